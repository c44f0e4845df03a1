"""What is promised in sum, so that a decision need not look at every grant."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TypeAlias

from nri_resmgr.policy.mems.fill import Fill, filled
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.policy.mems.zones import reach_of
from nri_resmgr.values import Bytes

Row: TypeAlias = tuple[int, int, int, int, str, int]
"""Priority, nodes of its zone (negative), bytes wanted, age (negative), id, reach.

The order of tuples is the order in which they are asked to give way.
"""


class Accounts:
    """Sums, rows and a way to lay them, per page size and zone.

    Those of a ledger never change: whoever wants to change any takes a copy.

    Attributes:
        sums: Page size to zone to bytes promised; no zero among them.
        rows: Page size to zone to who is promised them and may be widened,
            ascending. A list is never changed, only replaced.
    """

    def __init__(self, layout: MemoryLayout, grants: Iterable[Grant] = ()) -> None:
        self._layout = layout
        self._fills: dict[Bytes, Fill] = {}
        self._rooms: dict[tuple[Bytes, int], int] = {}
        self.sums: dict[Bytes, dict[int, int]] = {}
        self.rows: dict[Bytes, dict[int, list[Row]]] = {}
        for grant in grants:
            self.add(grant)

    def copy(self) -> Accounts:
        """Return the same, to be changed."""
        other = Accounts(self._layout)
        other._fills = {page: fill.copy() for page, fill in self._fills.items()}
        other.sums = {page: zones.copy() for page, zones in self.sums.items()}
        other.rows = {page: zones.copy() for page, zones in self.rows.items()}
        return other

    def add(self, grant: Grant) -> bool:
        """Count a grant in; tell whether all that is promised still fits.

        It is counted either way. Nothing is told of a page size that nobody
        asked about before.
        """
        fits = True
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            fill = self._fills.get(page)
            if fill and fill.lay(zone, amount):
                del self._fills[page]
                fits = False
        self._count(grant)
        return fits

    def remove(self, grant: Grant) -> None:
        """Count a grant out."""
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            if fill := self._fills.get(page):
                fill.lift(zone, amount)
        self._discount(grant)

    def move(self, grant: Grant, to: Grant) -> bool:
        """Count a grant in other nodes; False, and it stays, without room there."""
        before, after = grant.zone.bits, to.zone.bits
        moved: list[tuple[Fill, int]] = []
        for page, amount in grant.request.demand:
            if fill := self._fills.get(page):
                if not fill.move(before, after, amount):
                    for other, laid in moved:
                        other.move(after, before, laid)
                    return False
                moved.append((fill, amount))
        self._discount(grant)
        self._count(to)
        return True

    def overfull(self, page: Bytes) -> int:
        """Return nodes that are promised more than they hold; 0 where none are."""
        if page in self._fills:
            return 0
        zones = self.sums.get(page, {})
        fill, nodes = filled(zones, self._layout.sizes(page))
        if not nodes:
            self._fills[page] = fill
        return nodes

    def inside(self, nodes: int, page: Bytes) -> int:
        """Return what is promised to those who may be nowhere but in *nodes*."""
        zones = self.sums.get(page, {})
        return sum([zones[zone] for zone in zones if not zone & ~nodes])

    def has_room(self, zone: int, page: Bytes, amount: int) -> bool:
        """Tell whether *zone* can take so much more with nobody widened."""
        fill = self._fill(page)
        easy = fill is not None and fill.free(zone) >= amount
        return easy or self.room(zone, page) >= amount

    def room(self, zone: int, page: Bytes) -> int:
        """Return how much more *zone* can take with nobody widened."""
        known = self._rooms.get((page, zone))
        if known is None:
            all_of_it, fill = self._layout.room(zone, page), self._fill(page)
            left = fill.copy().lay(zone, all_of_it) if fill else all_of_it
            known = self._rooms[page, zone] = all_of_it - left
        return known

    def _fill(self, page: Bytes) -> Fill | None:
        return None if self.overfull(page) else self._fills[page]

    def _count(self, grant: Grant) -> None:
        self._rooms.clear()
        zone, reach = grant.zone.bits, reach_of(grant, self._layout)
        for page, amount in grant.request.demand:
            sums = self.sums.setdefault(page, {})
            sums[zone] = sums.get(zone, 0) + amount
            if reach != zone:
                rows = self.rows.setdefault(page, {})
                rows[zone] = row = rows.get(zone, []).copy()
                insort(row, (*_rank(grant, amount), grant.request.id, reach))

    def _discount(self, grant: Grant) -> None:
        self._rooms.clear()
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            sums, rows = self.sums[page], self.rows.get(page, {})
            sums[zone] -= amount
            if not sums[zone]:
                del sums[zone]
            if zone in rows:
                rows[zone] = row = rows[zone].copy()
                at = bisect_left(row, _rank(grant, amount))
                if at < len(row) and row[at][4] == grant.request.id:
                    del row[at]
                if not row:
                    del rows[zone]


def _rank(grant: Grant, amount: int) -> tuple[int, int, int, int]:
    request = grant.request
    width = grant.zone.bits.bit_count()
    return int(request.priority), -width, amount, -grant.age
