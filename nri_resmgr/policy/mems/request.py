"""What is asked of the memory allocator, and what is granted."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, cast

import msgspec
from msgspec.structs import force_setattr

from nri_resmgr.policy.mems.layout import BASE_PAGES
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.values import Bytes, NodeSet, QosClass

_NOTHING: Final = Bytes(0)


class MemoryPriority(enum.IntEnum):
    """How late a request is widened; the lowest goes first, a reservation never.

    `PRESERVED` is for containers whose nodes we must not touch: they are
    accounted wherever they may be, and come last.

    Source:
        nri-plugins, ``pkg/resmgr/lib/memory``: the same names and numbers.
    """

    BEST_EFFORT = 0
    BURSTABLE = 1024
    GUARANTEED = 16384
    PRESERVED = 32766
    RESERVATION = 32767


# HBM is scarce and never given to who does not ask for it.
USUAL_KINDS: Final = frozenset({MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.CXL})
"""The kinds of memory for who names none."""

PRIORITIES: Final[Mapping[QosClass, MemoryPriority]] = {
    QosClass.GUARANTEED: MemoryPriority.GUARANTEED,
    QosClass.BURSTABLE: MemoryPriority.BURSTABLE,
    QosClass.BEST_EFFORT: MemoryPriority.BEST_EFFORT,
}
"""How late a container is widened, by its QoS class."""


# Stands for a field that is left out; no request has it once it is made.
_BY_SIZE: Final = cast("MemoryPriority", None)


class MemoryRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A wish for memory near some nodes.

    Attributes:
        id: The container, or the name of a reservation.
        title: The container for people; the id where it is left out.
        affinity: Nodes to be near to; at least one. It may lack memory.
        size: Ordinary memory, in bytes.
        hugepages: Pages out of the pools that nodes have set aside.
        kinds: Kinds of memory wanted; those of `affinity` where left out.
        strict: Whether other kinds are worse than a refusal.
        priority: Who is widened first; best effort for a size of 0, else
            burstable, where left out.
    """

    id: str
    affinity: NodeSet
    size: Bytes = _NOTHING
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
        self._check()

    @property
    def demand(self) -> tuple[tuple[Bytes, int], ...]:
        """Page sizes with the bytes wanted of them, none of them 0."""
        ordinary = ((BASE_PAGES, self.size),) if self.size else ()
        if not self.hugepages:  # as most, and requests are made at every creation
            return ordinary
        pools = sorted((pool.size, pool.size * pool.count) for pool in self.hugepages)
        return ordinary + tuple((page, amount) for page, amount in pools if amount)

    def _check(self) -> None:
        negative = self.size < 0
        if self.hugepages:
            sizes = [pool.size for pool in self.hugepages]
            if len(set(sizes)) < len(sizes):
                msg = f"{self.title} names a size of huge pages twice"
                raise ValueError(msg)
            negative |= min(pool.count for pool in self.hugepages) < 0
            negative |= min(sizes) <= 0
        if negative:
            msg = f"{self.title}: nobody can want a negative amount of memory"
            raise ValueError(msg)

    def wants(self, page_size: Bytes) -> int:
        """Return how many bytes are wanted of pages of one size."""
        for page, amount in self.demand:
            if page == page_size:
                return amount
        return 0


class Grant(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A request with the nodes it was promised.

    Attributes:
        request: What was asked.
        zone: The nodes, all with memory. The request may be anywhere in them.
        kinds: Kinds that the zone was built of and is widened by first.
        age: Ascends from older to younger requests.
    """

    request: MemoryRequest
    zone: NodeSet
    kinds: frozenset[MemoryKind]
    age: int

    @property
    def is_fixed(self) -> bool:
        """Whether nothing may ever widen it."""
        return self.request.priority is MemoryPriority.RESERVATION
