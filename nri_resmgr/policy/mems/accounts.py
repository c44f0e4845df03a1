"""Sums of memory grants, so that a decision need not iterate over every grant."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.policy.mems.fill import Fill, filled
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.request import MemoryGrant, MemoryRequest
from nri_resmgr.policy.mems.zones import reach_of
from nri_resmgr.values import Bytes

Row: TypeAlias = tuple[int, int, int, int, str, int]
"""Priority, number of nodes (negative), bytes, age (negative), id, reach.

Requests are widened in the order of these tuples.
"""

Reaches: TypeAlias = dict[tuple[int, bool], int]
"""Bytes of requests by the nodes that they may be widened to, and whether never."""


class Accounts:
    """Sums, a feasible distribution, and widenable requests, per page size and zone.

    Those of a ledger never change: changes are made to a copy. Widenable requests, and
    how far all may be widened, are only indexed once memory is short, and kept up to
    date from then on.

    Attributes:
        sums: Page size to zone to bytes granted, all positive.
    """

    def __init__(
        self, layout: MemoryLayout, grants: Iterable[MemoryGrant] = ()
    ) -> None:
        self._layout = layout
        self._fills: dict[Bytes, Fill] = {}
        self._available: dict[tuple[Bytes, int], int] = {}
        self.sums: dict[Bytes, dict[int, int]] = {}
        # Copies share the lists of rows, so that these are replaced and never changed.
        self._rows: dict[Bytes, dict[int, list[Row]]] | None = None
        self._reaches: dict[Bytes, Reaches] | None = None
        for grant in grants:
            self.add(grant)

    def copy(self) -> Accounts:
        """Return a copy that may be changed."""
        other = Accounts(self._layout)
        other._fills = {page: fill.copy() for page, fill in self._fills.items()}
        other.sums = {page: zones.copy() for page, zones in self.sums.items()}
        if self._rows is not None:
            other._rows = {page: zones.copy() for page, zones in self._rows.items()}
        if self._reaches is not None:
            other._reaches = {page: one.copy() for page, one in self._reaches.items()}
        return other

    def index_rows(self, grants: Iterable[MemoryGrant]) -> bool:
        """Index how far requests may be widened; False if that is known already."""
        if self._rows is not None:
            return False
        self._rows, self._reaches = {}, {}
        for grant in grants:
            self._add_row(grant)
            self._add_reach(grant)
        return True

    def reaches(self, page: Bytes) -> Reaches:
        """Return what is granted by how far it may be widened; see `index_rows`."""
        return self._reaches.get(page, {}) if self._reaches else {}

    def rows(self, page: Bytes) -> Mapping[int, Sequence[Row]]:
        """Return the requests that may be widened by zone, in ascending order."""
        return self._rows.get(page, {}) if self._rows else {}

    def add(self, grant: MemoryGrant) -> None:
        """Add a grant, whether it fits or not."""
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            fill = self._fills.get(page)
            if fill and fill.lay(zone, amount):
                del self._fills[page]
            self._sum(page, zone, amount)
        self._add_row(grant)
        self._add_reach(grant)

    def remove(self, grant: MemoryGrant) -> None:
        """Remove a grant."""
        zone = grant.zone.bits
        for page, amount in grant.request.demand:
            if fill := self._fills.get(page):
                fill.lift(zone, amount)
            self._sum(page, zone, -amount)
        self._remove_row(grant)
        self._add_reach(grant, -1)

    def move(self, request: MemoryRequest, before: int, after: int) -> bool:
        """Move a request to another zone; False, and it stays, if it does not fit.

        Its row stays until `replace_rows`, since many moves are undone.
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

    def replace_rows(self, moved: Sequence[tuple[MemoryGrant, MemoryGrant]]) -> None:
        """Update the rows and reaches of requests that were moved."""
        ids = {to.request.id for _, to in moved}
        places = [
            (one.zone.bits, page) for one, _ in moved for page, _ in one.request.demand
        ]
        for zone, page in dict.fromkeys(places):
            rows = self._rows.get(page, {}) if self._rows else {}
            if kept := [row for row in rows.pop(zone, []) if row[-2] not in ids]:
                rows[zone] = kept
        for one, to in moved:
            self._add_row(to)
            self._add_reach(one, -1)
            self._add_reach(to)

    def overfull(self, page: Bytes) -> int:
        """Return nodes with more grants than capacity; 0 for none."""
        if page in self._fills:
            return 0
        zones = self.sums.get(page, {})
        fill, nodes = filled(zones, self._layout.sizes(page))
        if not nodes:
            self._fills[page] = fill
        return nodes

    def inside(self, nodes: int, page: Bytes) -> int:
        """Return the bytes granted to requests that are confined to *nodes*."""
        zones = self.sums.get(page, {})
        return sum([zones[zone] for zone in zones if not zone & ~nodes])

    def has_room_anywhere(self, page: Bytes, amount: int) -> bool:
        """Return whether every single node has so much free as distributed now."""
        fill = self._fill(page)
        return fill is not None and fill.least_free() >= amount

    def has_room(self, zone: int, page: Bytes, amount: int) -> bool:
        """Return whether *zone* can take so much more with no request widened."""
        fill = self._fill(page)
        if fill is None:
            return False
        if fill.free(zone) >= amount:
            return True
        if self._layout.total(zone, page) - self.inside(zone, page) < amount:
            return False
        return not fill.copy().lay(zone, amount)

    def available(self, zone: int, page: Bytes) -> int:
        """Return how much more *zone* can take with no request widened."""
        known = self._available.get((page, zone))
        if known is None:
            total, fill = self._layout.total(zone, page), self._fill(page)
            left = fill.copy().lay(zone, total) if fill else total
            known = self._available[page, zone] = total - left
        return known

    def _fill(self, page: Bytes) -> Fill | None:
        return None if self.overfull(page) else self._fills[page]

    def _sum(self, page: Bytes, zone: int, amount: int) -> None:
        self._available.clear()
        sums = self.sums.setdefault(page, {})
        if total := sums.get(zone, 0) + amount:
            sums[zone] = total
        else:
            del sums[zone]

    def _add_reach(self, grant: MemoryGrant, times: int = 1) -> None:
        if self._reaches is None:
            return
        key = reach_of(grant, self._layout), grant.is_fixed
        for page, amount in grant.request.demand:
            sums = self._reaches.setdefault(page, {})
            if total := sums.get(key, 0) + times * amount:
                sums[key] = total
            else:
                del sums[key]

    def _add_row(self, grant: MemoryGrant) -> None:
        if self._rows is None:
            return
        zone, reach = grant.zone.bits, reach_of(grant, self._layout)
        if reach == zone:
            return
        for page, amount in grant.request.demand:
            rows = self._rows.setdefault(page, {})
            rows[zone] = row = rows.get(zone, []).copy()
            insort(row, row_of(grant, zone, amount, reach))

    def _remove_row(self, grant: MemoryGrant) -> None:
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


def row_of(grant: MemoryGrant, zone: int, amount: int, reach: int) -> Row:
    """Return the row of a grant as if it were in some zone."""
    request = grant.request
    rank = int(request.priority), -zone.bit_count()
    return *rank, amount, -grant.age, request.id, reach
