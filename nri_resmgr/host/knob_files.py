"""Host files that are set to a value, and when two texts of one mean the same."""

from __future__ import annotations

import os
from typing import Final, Protocol

from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.values import CpuSet, InputError

_MASKS: Final = ("smp_affinity", "default_smp_affinity")
_LIST: Final = "_list"

# No folder of which a path of the journal may lead out.
_ROOTS: Final = ("/sys/", "/proc/")


class WritableTree(Tree, Protocol):
    """A tree of which some files take a value."""

    def write(self, path: str, text: str) -> None:
        """Write a value.

        Raises:
            OSError: The kernel refused it.
        """


class HostFiles(HostTree):
    """The files of a live host, or of a folder that looks like one, to be written."""

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`.

        No file is made: what the kernel does not offer cannot be set.
        """
        flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
        fd = os.open(self.root + path, flags)
        try:
            os.write(fd, f"{text}\n".encode())  # one write is one value
        finally:
            os.close(fd)


def is_same(path: str, one: str, other: str) -> bool:
    """Tell whether two texts set a file to the same value.

    The kernel writes ``0-3`` for ``0,1,2,3``, and as many words of a mask as it has
    CPUs for.

    >>> is_same("/proc/irq/9/smp_affinity_list", "0,1", "0-1")
    True
    >>> is_same("/proc/irq/default_smp_affinity", "f", "00000000,0000000f")
    True
    """
    return one == other or _meaning(path, one) == _meaning(path, other)


def is_knob(path: str) -> bool:
    """Tell whether a path is of a kernel's file, and of no other one."""
    return path.startswith(_ROOTS) and os.path.normpath(path) == path


def _meaning(path: str, text: str) -> object:
    name = path.rpartition("/")[2]
    try:
        if name.endswith(_LIST):
            return CpuSet.parse(text)
        if name in _MASKS:
            return CpuSet.from_mask(text)
    except InputError:
        return text
    return text.strip()
