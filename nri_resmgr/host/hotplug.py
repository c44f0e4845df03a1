"""Noticing that CPUs or memory came or went."""

from __future__ import annotations

import attrs

from nri_resmgr.host.paths import CPU_ROOT, NODE_ROOT
from nri_resmgr.host.tree import Tree
from nri_resmgr.values.by_content import ByContent

# Their texts change whenever a CPU or a node's memory comes or goes.
_TELLTALES = (
    f"{CPU_ROOT}/online",
    f"{CPU_ROOT}/present",
    f"{NODE_ROOT}/online",
    f"{NODE_ROOT}/has_memory",
    f"{NODE_ROOT}/has_normal_memory",
)

# A folder per block of memory: a node may grow without any list changing.
_BLOCKS = "/sys/devices/system/memory"


@attrs.frozen(eq=False, repr=False)
class Fingerprint(ByContent):
    """What a few small files said; equal ones mean that the model still holds."""

    texts: tuple[str | None, ...]
    blocks: tuple[str, ...]


def read_fingerprint(tree: Tree) -> Fingerprint:
    """Read the files that change with every hotplug: a handful and one folder.

    Take it *before* reading the machine: what changes in between is then seen
    at the next look, and never missed.

    Raises:
        UnreadableHostFile: A file is there and cannot be read.
    """
    texts = tuple(tree.read(path) for path in _TELLTALES)
    # Not MemTotal: a balloon in a virtual machine changes it all the time.
    return Fingerprint(texts, tree.names(_BLOCKS))


class HotplugWatch:
    """Tells whether a model is stale; the caller decides when to look.

    It keeps no thread and no clock: look from a timer, or when the kernel
    sends a uevent of the cpu or memory subsystem.
    """

    def __init__(self, tree: Tree) -> None:
        """Remember the host as it is now; read the machine after this."""
        self._tree = tree
        self._known = read_fingerprint(tree)

    def has_changed(self) -> bool:
        """Tell whether anything came or went since the last answer."""
        before, self._known = self._known, read_fingerprint(self._tree)
        return before != self._known
