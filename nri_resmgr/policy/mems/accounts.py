"""What is promised in sum, so that a decision need not look at every grant."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.policy.mems.fill import Fill, filled
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import Grant, MemoryRequest
from nri_resmgr.policy.mems.zones import reach_of
from nri_resmgr.values import Bytes

Row: TypeAlias = tuple[int, int, int, int, str, int]
"""Priority, nodes of its zone (negative), bytes wanted, age (negative), id, reach.

The order of tuples is the order in which they are asked to give way.
"""


class Accounts:
    """Sums, a way to lay them, and who may give way, per page size and zone.

    Those of a ledger never change: whoever wants to change any takes a copy. Who
    may give way is found out when somebody has to, and kept up from then on: where
    memory is plenty nobody ever asks.

    Attributes:
        sums: Page size to zone to bytes promised; no zero among them.
    """

    def __init__(self, layout: MemoryLayout, grants: Iterable[Grant] = ()) -> None:
        self._layout = layout
        self._fills: dict[Bytes, Fill] = {}
        self._rooms: dict[tuple[Bytes, int], int] = {}
        self.sums: dict[Bytes, dict[int, int]] = {}
        # A list of rows is never changed, only replaced.
        self._rows: dict[Bytes, dict[int, list[Row]]] | None = None
        for grant in grants:
            self.add(grant)

    def copy(self) -> Accounts:
        """Return the same, to be changed."""
        other = Accounts(self._layout)
        other._fills = {page: fill.copy() for page, fill in self._fills.items()}
        other.sums = {page: zones.copy() for page, zones in self.sums.items()}
        if self._rows is not None:
            other._rows = {page: zones.copy() for page, zones in self._rows.items()}
        return other

    def learn_rows(self, grants: Iterable[Grant]) -> bool:
        """Find out who may give way; False where that is known already.

        Args:
            grants: All that are counted.
        """
        if self._rows is not None:
            return False
        self._rows = {}
        for grant in grants:
            self._seat(grant)
        return True

    def rows(self, page: Bytes) -> Mapping[int, Sequence[Row]]:
        """Return by zone who is promised memory and may be widened, ascending."""
        return self._rows.get(page, {}) if self._rows else {}

    def add(self, grant: Grant) -> None:
        """Count a grant in, whether there is room for it or not."""
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            fill = self._fills.get(page)
            if fill and fill.lay(zone, amount):
                del self._fills[page]
            self._sum(page, zone, amount)
        self._seat(grant)

    def remove(self, grant: Grant) -> None:
        """Count a grant out."""
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            if fill := self._fills.get(page):
                fill.lift(zone, amount)
            self._sum(page, zone, -amount)
        self._unseat(grant)

    def move(self, request: MemoryRequest, before: int, after: int) -> bool:
        """Count a request in another zone; False, and it stays, without room.

        Its row stays where it is until `reseat`: many who are moved come back.
        """
        moved: list[tuple[Fill, int]] = []
        for page, amount in request.demand:
            if fill := self._fills.get(page):
                if not fill.move(before, after, amount):
                    for other, laid in moved:
                        other.move(after, before, laid)
                    return False
                moved.append((fill, amount))
        for page, amount in request.demand:
            self._sum(page, before, -amount)
            self._sum(page, after, amount)
        return True

    def reseat(self, moved: Sequence[tuple[Grant, Grant]]) -> None:
        """Give the rows of requests that were moved their new places."""
        ids = {to.request.id for _, to in moved}
        seats = [
            (one.zone.bits, page) for one, _ in moved for page, _ in one.request.demand
        ]
        for zone, page in dict.fromkeys(seats):
            rows = self._rows.get(page, {}) if self._rows else {}
            if kept := [row for row in rows.pop(zone, []) if row[-2] not in ids]:
                rows[zone] = kept
        for _, to in moved:
            self._seat(to)

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

    def has_room_anywhere(self, page: Bytes, amount: int) -> bool:
        """Tell whether each single node can take so much with nobody moved."""
        fill = self._fill(page)
        return fill is not None and fill.least_free() >= amount

    def has_room(self, zone: int, page: Bytes, amount: int) -> bool:
        """Tell whether *zone* can take so much more with nobody widened."""
        fill = self._fill(page)
        if fill is None:
            return False
        if fill.free(zone) >= amount:
            return True
        if self._layout.room(zone, page) - self.inside(zone, page) < amount:
            return False
        return not fill.copy().lay(zone, amount)

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

    def _sum(self, page: Bytes, zone: int, amount: int) -> None:
        self._rooms.clear()
        sums = self.sums.setdefault(page, {})
        if total := sums.get(zone, 0) + amount:
            sums[zone] = total
        else:
            del sums[zone]

    def _seat(self, grant: Grant) -> None:
        if self._rows is None:
            return
        zone, reach = grant.zone.bits, reach_of(grant, self._layout)
        if reach == zone:
            return
        for page, amount in grant.request.demand:
            rows = self._rows.setdefault(page, {})
            rows[zone] = row = rows.get(zone, []).copy()
            insort(row, row_of(grant, zone, amount, reach))

    def _unseat(self, grant: Grant) -> None:
        if self._rows is None:
            return
        zone, reach = grant.zone.bits, reach_of(grant, self._layout)
        if reach == zone:
            return
        for page, amount in grant.request.demand:
            rows = self._rows[page]
            rows[zone] = row = rows[zone].copy()
            del row[bisect_left(row, row_of(grant, zone, amount, reach))]
            if not row:
                del rows[zone]


def row_of(grant: Grant, zone: int, amount: int, reach: int) -> Row:
    """Return the row of a grant that is, or would be, in some zone."""
    request = grant.request
    rank = int(request.priority), -zone.bit_count()
    return *rank, amount, -grant.age, request.id, reach
