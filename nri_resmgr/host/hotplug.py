"""A new model when CPUs or memory came or went."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from nri_resmgr.host.discovery import NOTHING_TOLD, read_machine
from nri_resmgr.host.paths import CPU_ROOT, NODE_ROOT
from nri_resmgr.host.tree import Tree, naming_root
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.values import HostError

# Their texts change whenever a CPU or a node's memory comes or goes.
_TELLTALES: Final = (
    f"{CPU_ROOT}/online",
    f"{CPU_ROOT}/present",
    f"{NODE_ROOT}/online",
    f"{NODE_ROOT}/has_memory",
    f"{NODE_ROOT}/has_normal_memory",
)

# Pages of each zone, also when a block goes and its node keeps others. Unlike
# MemTotal they stay the same when a balloon in a virtual machine takes memory.
_ZONES: Final = "/proc/zoneinfo"
_ZONE: Final = r"Node \d+, zone.*"
_PRESENT: Final = r" present +\d+"

# A folder per block of memory, for who cannot see the zones.
_BLOCKS: Final = "/sys/devices/system/memory"

Fingerprint: TypeAlias = tuple[tuple[str | None, ...], tuple[str, ...]]
"""What a few small files said; equal ones mean that the model still holds."""

log = Logger(__name__)


def read_fingerprint(tree: Tree) -> Fingerprint:
    """Read the files that change with every hotplug: six, or five and a folder.

    Raises:
        UnreadableHostFile: A file is there and cannot be read.

    Source:
        Linux, ``mm/vmstat.c`` for ``/proc/zoneinfo``, and ``struct zone`` in
        ``include/linux/mmzone.h`` for "present" and "managed".
    """
    with naming_root(tree):
        texts = tuple(tree.read(path) for path in _TELLTALES)
        zones = tree.read(_ZONES)
        if zones is None:
            return texts, tree.names(_BLOCKS)
    return texts, (*re.findall(_ZONE, zones), *re.findall(_PRESENT, zones))


class StillChanging(HostError):
    """CPUs or memory came or went while the machine was read."""

    def __str__(self) -> str:
        return "CPUs or memory came or went while the machine was read"


class HotplugWatch:
    """Gives a new model when CPUs or memory came or went.

    It keeps no thread and no clock: poll from a timer, or when the kernel sends
    a uevent of the cpu or memory subsystem. A poll that finds nothing takes
    0.2 ms with few CPUs and 0.6 ms with 256, beside the time that the kernel
    takes to write its zones; one that finds something reads the whole machine.
    An event loop that cannot wait for that polls in a thread
    (``asyncio.to_thread``).

    Attributes:
        unsettled: Why the last poll gave no model though something changed;
            None if it was not so. The next poll tries again.
    """

    def __init__(
        self, tree: Tree, memory_kinds: Mapping[int, MemoryKind] = NOTHING_TOLD
    ) -> None:
        """Remember the host as it is now; read the machine after this.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        self._tree = tree
        self._memory_kinds = memory_kinds
        self._known = read_fingerprint(tree)
        self.unsettled: HostError | None = None

    def poll(self) -> Machine | None:
        """Return the machine as it is now, if it changed since the last model.

        While the kernel is in the middle of a change its files may contradict
        each other. Then the old model holds on and `unsettled` tells why.
        """
        before, self.unsettled = self.unsettled, None
        try:
            return self._changed()
        except HostError as error:
            self.unsettled = error
            if str(error) != str(before):  # once, not with every poll
                log.warning("topology.unsettled", error=str(error))
            return None

    def _changed(self) -> Machine | None:
        found = read_fingerprint(self._tree)
        if found == self._known:
            return None
        machine = read_machine(self._tree, self._memory_kinds)
        if read_fingerprint(self._tree) != found:
            raise StillChanging
        self._known = found
        return machine
