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
        other._fills = {page: fill.copy() for page, fill in self._fills.items()}  # noqa: SLF001 - of the same class
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
        if not self.overfull(page) and self._fills[page].free(zone) >= amount:
            return True
        return self.room(zone, page) >= amount

    def room(self, zone: int, page: Bytes) -> int:
        """Return how much more *zone* can take with nobody widened."""
        most = self._rooms.get((page, zone))
        if most is None:
            everything = self._layout.room(zone, page)
            fits = not self.overfull(page)
            left = self._fills[page].copy().lay(zone, everything) if fits else 0
            most = self._rooms[page, zone] = everything - left if fits else 0
        return most

    def _count(self, grant: Grant) -> None:
        self._rooms.clear()
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            sums = self.sums.setdefault(page, {})
            sums[zone] = sums.get(zone, 0) + amount
            if not grant.is_fixed:
                rows = self.rows.setdefault(page, {})
                rows[zone] = row = rows.get(zone, []).copy()
                insort(row, _row(grant, amount, self._layout))

    def _discount(self, grant: Grant) -> None:
        self._rooms.clear()
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            sums = self.sums[page]
            sums[zone] -= amount
            if not sums[zone]:
                del sums[zone]
            if not grant.is_fixed:
                rows = self.rows[page]
                rows[zone] = row = rows[zone].copy()
                del row[bisect_left(row, _row(grant, amount, self._layout))]
                if not row:
                    del rows[zone]


def _row(grant: Grant, amount: int, layout: MemoryLayout) -> Row:
    request, zone = grant.request, grant.zone.bits
    reach = reach_of(grant, layout)
    width = zone.bit_count()
    return request.priority, -width, amount, -grant.age, request.id, reach
