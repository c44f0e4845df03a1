"""Requests to the memory allocator, and grants."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import force_setattr

from nri_resmgr.policy.mems.layout import BASE_PAGES
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.values import Bytes, NodeSet, QosClass, StoredValue


class MemoryPriority(enum.IntEnum):
    """Order in which requests are widened: the lowest first, a reservation never.

    `PRESERVED` is for containers whose nodes are never changed: they are only
    accounted, and widened last.

    Source:
        nri-plugins, ``pkg/resmgr/lib/memory``: the same names and numbers.
    """

    BEST_EFFORT = 0
    BURSTABLE = 1024
    GUARANTEED = 16384
    PRESERVED = 32766
    RESERVATION = 32767


# HBM is scarce and only granted on request.
USUAL_KINDS: Final = frozenset({MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.CXL})
"""The kinds of memory for containers that ask for none."""

PRIORITIES: Final[Mapping[QosClass, MemoryPriority]] = {
    QosClass.GUARANTEED: MemoryPriority.GUARANTEED,
    QosClass.BURSTABLE: MemoryPriority.BURSTABLE,
    QosClass.BEST_EFFORT: MemoryPriority.BEST_EFFORT,
}
"""The priority of a container's memory, by QoS class."""


# Default of a field whose value depends on others; replaced by `__post_init__`.
_BY_SIZE: Final = cast("MemoryPriority", None)


class MemoryRequest(StoredValue, frozen=True):
    """A request for memory near some nodes.

    Attributes:
        id: The container, or the name of a reservation.
        title: Name for messages; by default the id.
        affinity: The nodes to be near to, at least one, with or without memory.
        size: Ordinary memory, in bytes.
        hugepages: Huge pages.
        kinds: Preferred kinds of memory; by default those of `affinity`.
        strict: Whether to refuse it rather than grant other kinds.
        priority: By default best effort for a size of 0, else burstable.
    """

    id: str
    affinity: NodeSet
    size: Bytes = Bytes(0)
    hugepages: tuple[HugePages, ...] = ()
    kinds: frozenset[MemoryKind] = frozenset()
    strict: bool = False
    priority: MemoryPriority = _BY_SIZE
    title: str = ""

    def __post_init__(self) -> None:
        if self.priority is _BY_SIZE:
            wants = self.size or self.hugepages
            usual = MemoryPriority.BURSTABLE if wants else MemoryPriority.BEST_EFFORT
            force_setattr(self, "priority", usual)
        if not self.title:
            force_setattr(self, "title", self.id)
        negative = self.size < 0
        if self.hugepages:
            sizes = [pool.size for pool in self.hugepages]
            if len(set(sizes)) < len(sizes):
                raise ValueError(f"{self.title} names a size of huge pages twice")
            negative |= min(pool.count for pool in self.hugepages) < 0
            negative |= min(sizes) <= 0
        if negative:
            raise ValueError(f"{self.title} asks for a negative amount of memory")

    @property
    def demand(self) -> tuple[tuple[Bytes, int], ...]:
        """Pairs of a page size and the bytes of it, all positive."""
        ordinary = ((BASE_PAGES, self.size),) if self.size else ()
        if not self.hugepages:  # the common case, at every creation
            return ordinary
        pools = sorted((pool.size, pool.size * pool.count) for pool in self.hugepages)
        return ordinary + tuple((page, amount) for page, amount in pools if amount)

    def wants(self, page_size: Bytes) -> int:
        """Return the bytes of pages of one size."""
        for page, amount in self.demand:
            if page == page_size:
                return amount
        return 0


class MemoryGrant(StoredValue, frozen=True):
    """A request with its nodes, all with memory; the memory may be anywhere in them.

    The zone is widened by nodes of *kinds* first. Younger requests have a higher *age*.
    """

    request: MemoryRequest
    zone: NodeSet
    kinds: frozenset[MemoryKind]
    age: int

    @property
    def is_fixed(self) -> bool:
        """True if it is never widened."""
        return self.request.priority is MemoryPriority.RESERVATION
