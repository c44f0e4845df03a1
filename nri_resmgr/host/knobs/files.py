"""Writes host files, and compares the values of their texts."""

from __future__ import annotations

import os
from typing import Final, Protocol

from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.values import CpuSet, InputError

_MASKS: Final = ("smp_affinity", "default_smp_affinity")
_LIST: Final = "_list"

# Paths of a journal must not lead out of these folders.
_ROOTS: Final = ("/sys/", "/proc/")


class WritableTree(Tree, Protocol):
    """A tree with files that can be written."""

    def write(self, path: str, text: str) -> None:
        """Write a value.

        Raises:
            OSError: The kernel rejected it.
        """


class WritableHostTree(HostTree):
    """Writable files of a live host, or of a folder with the same layout."""

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`.

        No file is created: files that the kernel does not have cannot be set.
        """
        flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
        fd = os.open(self.root + path, flags)
        try:
            os.write(fd, f"{text}\n".encode())  # the kernel parses each write by itself
        finally:
            os.close(fd)


def is_same(path: str, one: str, other: str) -> bool:
    """Return whether two texts mean the same value of a file.

    The kernel writes ``0,1,2,3`` as ``0-3``, and masks with a word per 32 CPUs.

    >>> is_same("/proc/irq/9/smp_affinity_list", "0,1", "0-1")
    True
    >>> is_same("/proc/irq/default_smp_affinity", "f", "00000000,0000000f")
    True
    """
    return one == other or _meaning(path, one) == _meaning(path, other)


def is_knob(path: str) -> bool:
    """Return whether a path is that of a file of sysfs or procfs."""
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
