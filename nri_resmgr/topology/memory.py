"""NUMA nodes: their CPUs and their memory."""

from __future__ import annotations

import enum

from nri_resmgr.values import NO_CPUS, Bytes, CpuSet, StoredValue


class MemoryKind(enum.StrEnum):
    """Technology of a node's memory; the values are those of annotations."""

    DRAM = "dram"
    HBM = "hbm"
    PMEM = "pmem"
    CXL = "cxl"


class HugePages(StoredValue, frozen=True):
    """The pool of huge pages of one size on a node."""

    size: Bytes
    count: int


class Node(StoredValue, frozen=True):
    """One NUMA node; it may have no CPUs, or no memory.

    Attributes:
        id: The kernel's node id; ids may have gaps.
        memory: Total memory; 0 for a node without memory.
        movable: Whether all of it is movable, so that the kernel itself cannot use it.
            A container then needs another node as well, for its kernel memory.
        hugepages: Pools by ascending page size.
    """

    id: int
    cpus: CpuSet = NO_CPUS
    memory: Bytes = Bytes(0)
    kind: MemoryKind = MemoryKind.DRAM
    movable: bool = False
    hugepages: tuple[HugePages, ...] = ()

    @property
    def is_normal(self) -> bool:
        """True if the node has memory that the kernel itself may use."""
        return bool(self.memory) and not self.movable
