"""The limit of fast memory of a cgroup, which only some kernels have.

Mainline Linux has no limit of memory by tier: ``memory.high`` and the others count the
memory of all nodes together. Kernels with the patches that CRI Resource Manager was
made for have a soft limit in the memory controller of cgroup v1.
"""

from __future__ import annotations

import os
import re
from typing import Final

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.cgroups.writes import FailedWrite, write_cgroup_files
from nri_resmgr.host.knobs.files import WritableTree

TOP_TIER_FILE: Final = "memory.toptier_soft_limit_in_bytes"

_MEMORY_ROOT: Final = f"{CGROUP_ROOT}/memory"

# 64 bits.
_NUMBER: Final = re.compile(r"(-?[0-9]{1,20})\n?", re.ASCII)

# The kernel keeps whole pages.
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class TopTierCgroups:
    """Reads and writes the limits of containers; in a thread."""

    def __init__(self, tree: WritableTree) -> None:
        self._tree = tree
        self._finder = CgroupFinder(tree)

    def folder_of(self, reference: CgroupReference) -> str:
        """Return the folder of a container that has the file, if the kernel has it.

        Returns:
            Empty where the container has no cgroup.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        place = self._finder.find(reference.id, reference.path, reference.pid)
        if place is None:
            return ""
        if self._finder.is_v2:
            return place.scope
        folder = f"{_MEMORY_ROOT}{place.scope.removeprefix(place.top)}"
        # A runtime makes the cgroups of the hierarchies one after the other.
        is_made = self._tree.read(f"{folder}/cgroup.procs") is not None
        return folder if is_made else ""

    def limit_of(self, folder: str) -> int | None:
        """Return the limit in bytes, negative without one; None without the file.

        Raises:
            UnreadableHostFile: It is there and cannot be read.
        """
        text = self._tree.read(f"{folder}/{TOP_TIER_FILE}")
        if text is None:
            return None
        # With anything else the kernel has the file nevertheless: it is written.
        match = _NUMBER.fullmatch(text)
        return int(match[1]) if match else -1

    def set_limit(self, folder: str, limit: int) -> tuple[FailedWrite, ...]:
        """Write a limit; return the write if it failed."""
        return write_cgroup_files(self._tree, folder, {TOP_TIER_FILE: (str(limit),)})


def is_same_limit(one: int, other: int) -> bool:
    """Return whether limits differ by less than the kernel's rounding to pages."""
    return one // _PAGE == other // _PAGE
