"""NUMA nodes: which CPUs are near, and what memory they hold."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nri_resmgr.values import NO_CPUS, Bytes, CpuSet

_NONE: Final = Bytes(0)


class MemoryKind(enum.StrEnum):
    """What a node's memory is made of; the values are the words of annotations."""

    DRAM = "dram"
    HBM = "hbm"
    PMEM = "pmem"
    CXL = "cxl"


class HugePages(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The pool of huge pages of one size that a node was given."""

    size: Bytes
    count: int


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One NUMA node; it may have no CPUs, or no memory.

    Attributes:
        id: The kernel's node id; ids may have gaps.
        cpus: The online CPUs of the node.
        memory: Total memory, 0 for a node without.
        kind: What the memory is made of.
        movable: Whether all of it is movable, so that the kernel itself cannot
            use it. A container needs some other node as well.
        hugepages: Pools by ascending page size.
    """

    id: int
    cpus: CpuSet = NO_CPUS
    memory: Bytes = _NONE
    kind: MemoryKind = MemoryKind.DRAM
    movable: bool = False
    hugepages: tuple[HugePages, ...] = ()

    @property
    def is_normal(self) -> bool:
        """Whether the node has memory that the kernel may use for itself."""
        return bool(self.memory) and not self.movable
