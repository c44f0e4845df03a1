"""Refusals of the memory allocator, in sentences with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_resmgr.policy.mems.layout import BASE_PAGES
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, NodeSet, PolicyError

_NAMES: Final = {
    1 << 40: "TiB",
    1 << 30: "GiB",
    1 << 20: "MiB",
    1 << 10: "KiB",
    1: "bytes",
}
_UNITS: Final = (1 << 30, 1 << 20, 1 << 10)


@dataclass(eq=False)
class MemoryShort(PolicyError):
    """The request does not fit, even if all others are widened as far as possible.

    Attributes:
        page_size: The page size; `BASE_PAGES` for ordinary memory.
        nodes: The nodes that are short; the request is confined to them.
        promised: Granted to others that are confined to them, in bytes.
        reserved: The part of `promised` that is reservations.
        strict: Whether the request excludes other kinds of memory.
        advice: Replaces `helps`, where a policy has tried what helps.
    """

    title: str
    wanted: Bytes
    page_size: Bytes
    nodes: NodeSet
    capacity: Bytes
    promised: Bytes
    reserved: Bytes
    strict: bool
    advice: str = ""

    @property
    def most(self) -> Bytes:
        """The most that the request could be granted."""
        return Bytes(self.capacity - self.promised)

    @property
    def supply(self) -> str:
        """Text of the capacity of the nodes, and of what is granted."""
        capacity = f"{bytes_text(self.capacity)} of {_pages(self.page_size)}"
        have = "nodes {} have" if len(self.nodes) > 1 else "node {} has"
        return f"{have.format(self.nodes)} {capacity}, {self._granted()}"

    @property
    def helps(self) -> tuple[str, ...]:
        """Texts of what would help; each suffices."""
        helps = []
        if self.most:
            helps.append(f"ask for at most {bytes_text(self.most, down=True)}")
        if self.promised > self.reserved:
            helps.append("stop containers that have memory there")
        if self.reserved:
            helps.append("reserve less")
        if self.strict:
            helps.append("allow other kinds of memory")
        return tuple(helps or ["use a node with more memory"])

    def __str__(self) -> str:
        advice = self.advice or "to help, " + ", or ".join(self.helps)
        return (
            f"{self.title} asks for {bytes_text(self.wanted)} of "
            f"{_pages(self.page_size)} on nodes {self.nodes}; they hold "
            f"{bytes_text(self.capacity)}, {self._granted()}; {advice}"
        )

    def _granted(self) -> str:
        if not self.promised:
            return "none of it granted to others"
        granted = f"{bytes_text(self.promised)} of it granted to others"
        if self.reserved:
            granted += f" ({bytes_text(self.reserved)} reserved)"
        return granted


@dataclass(eq=False)
class MemoryKindMissing(PolicyError):
    """A strict request names a kind of memory that no node has."""

    title: str
    missing: frozenset[MemoryKind]
    there: frozenset[MemoryKind]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {_kinds(self.missing)} memory only; "
            f"this machine has {_kinds(self.there)}"
        )


@dataclass(eq=False)
class NormalMemoryMissing(PolicyError):
    """A strict request only allows movable memory, which the kernel cannot use.

    A process that is bound to movable nodes cannot start.
    """

    title: str
    kinds: frozenset[MemoryKind]
    normal: frozenset[MemoryKind]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {_kinds(self.kinds)} memory only, and "
            f"all of it is movable; to help, allow one of {_kinds(self.normal)} too"
        )


class StaleOffer(ValueError):  # a caller's bug, so not a PolicyError
    """An offer was committed to another ledger than it was made from."""


def bytes_text(amount: Bytes, *, down: bool = False) -> str:
    """Return an amount with its unit, rounded to at least three digits.

    Rounded *down* where the amount must not be exceeded.

    >>> bytes_text(Bytes(529261470)), bytes_text(Bytes(2 << 30)), bytes_text(Bytes(0))
    ('505 MiB', '2 GiB', '0')
    """
    unit = next((unit for unit in _UNITS if amount >= 100 * unit), 1)
    rounded = (amount + (0 if down else unit // 2)) // unit * unit
    for size, name in _NAMES.items():
        if rounded and rounded % size == 0:
            return f"{rounded // size} {name}"
    return str(rounded)


def _pages(page_size: Bytes) -> str:
    if page_size == BASE_PAGES:
        return "memory"
    return f"{bytes_text(page_size)} huge pages"


def _kinds(kinds: frozenset[MemoryKind]) -> str:
    return ", ".join(kind for kind in MemoryKind if kind in kinds) or "none"
