"""What the memory allocator refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.policy.mems.layout import BASE_PAGES
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, NodeSet, PolicyError, format_bytes

_UNITS: Final = (1 << 30, 1 << 20, 1 << 10)


@dataclass(eq=False)
class MemoryShort(PolicyError):
    """The request does not fit, even if all that may be widened is widened.

    Attributes:
        title: Who asks, for people.
        wanted: What is asked for, in bytes.
        page_size: Of which pages; `BASE_PAGES` for ordinary memory.
        nodes: The nodes that are short; the request may be nowhere else.
        capacity: What these nodes hold.
        promised: What of it others have who may be nowhere else either.
        reserved: What of `promised` is reservations.
        strict: Whether the request rules out other kinds of memory.
    """

    title: str
    wanted: Bytes
    page_size: Bytes
    nodes: NodeSet
    capacity: Bytes
    promised: Bytes
    reserved: Bytes
    strict: bool

    @property
    def most(self) -> Bytes:
        """The most that the request could be granted."""
        return Bytes(self.capacity - self.promised)

    @property
    def supply(self) -> str:
        """What the nodes have, in words."""
        capacity = f"{_amount(self.capacity)} of {_pages(self.page_size)}"
        return f"nodes {self.nodes} have {capacity}, {self._promises()}"

    @property
    def helps(self) -> tuple[str, ...]:
        """What would help, in words; any of it will do."""
        helps = []
        if self.most:
            helps.append(f"ask for at most {_amount(self.most)}")
        if self.promised > self.reserved:
            helps.append("stop containers that have memory there")
        if self.reserved:
            helps.append("reserve less")
        if self.strict:
            helps.append("allow other kinds of memory")
        return tuple(helps or ["use a node with more memory"])

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {_amount(self.wanted)} of "
            f"{_pages(self.page_size)} on nodes {self.nodes}; they hold "
            f"{_amount(self.capacity)}, {self._promises()}; "
            f"to help, {', or '.join(self.helps)}"
        )

    def _promises(self) -> str:
        promised, reserved = _amount(self.promised), _amount(self.reserved)
        return f"promised to others: {promised}, of it reserved: {reserved}"


@dataclass(eq=False)
class MemoryKindMissing(PolicyError):
    """A strict request names a kind of memory that no node has."""

    title: str
    missing: frozenset[MemoryKind]
    there: frozenset[MemoryKind]

    def __str__(self) -> str:
        return (
            f"{self.title} wants {_kinds(self.missing)} memory and nothing else; "
            f"this machine has {_kinds(self.there)}"
        )


@dataclass(eq=False)
class NormalMemoryMissing(PolicyError):
    """A strict request leaves the kernel no memory for itself.

    A process all of whose nodes are movable cannot start.
    """

    title: str
    kinds: frozenset[MemoryKind]
    normal: frozenset[MemoryKind]

    def __str__(self) -> str:
        return (
            f"{self.title} wants {_kinds(self.kinds)} memory and nothing else, and "
            f"all of it is movable; to help, allow one of {_kinds(self.normal)} too"
        )


class StaleOffer(ValueError):  # a caller's bug, so not a PolicyError
    """An offer was committed to another ledger than it was made from."""


def _amount(amount: Bytes) -> str:
    """Write an amount for people: no more digits than matter, never too much."""
    unit = next((unit for unit in _UNITS if amount >= 1000 * unit), 1)
    return format_bytes(Bytes(amount // unit * unit))


def _pages(page_size: Bytes) -> str:
    if page_size == BASE_PAGES:
        return "memory"
    return f"{format_bytes(page_size)} huge pages"


def _kinds(kinds: frozenset[MemoryKind]) -> str:
    return ", ".join(kind for kind in MemoryKind if kind in kinds) or "none"
