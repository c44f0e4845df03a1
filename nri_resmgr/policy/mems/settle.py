"""Widening of requests, least important first, until no node is over-committed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import TypeAlias

from nri_resmgr.policy.mems.accounts import Row, row_of
from nri_resmgr.policy.mems.errors import MemoryShort
from nri_resmgr.policy.mems.fill import filled
from nri_resmgr.policy.mems.ledger import MemoryLedger, Spill, Widening
from nri_resmgr.policy.mems.request import MemoryGrant
from nri_resmgr.policy.mems.zones import reach_of, widened
from nri_resmgr.values import Bytes, NodeSet

Settled: TypeAlias = tuple[MemoryLedger, tuple[Widening, ...]]
"""A ledger in which all requests fit, and the requests that were widened."""


def settle(grant: MemoryGrant, ledger: MemoryLedger) -> Settled:
    """Add *grant* to a ledger, or replace that of its request, and widen requests.

    No request is widened if widening requests of lower priority suffices, nor by more
    steps than necessary.

    Raises:
        MemoryShort: It does not fit by any widening.
    """
    demand = grant.request.demand
    for page, _ in demand:
        ledger.accounts.overfull(page)  # computed here once, so that copies have it
    counted = ledger.count(grant)
    if not [page for page, _ in demand if counted.accounts.overfull(page)]:
        return counted, ()
    if ledger.accounts.index_rows(ledger.grants.values()):
        counted = ledger.count(grant)
    if short := _shortage(grant, counted):
        raise short
    trial = _Trial(grant, counted)
    while spill := trial.spill():
        movable = trial.movable(spill)
        if not movable:
            raise ValueError(f"{grant.request.title} does not fit after all")
        for request in _in_turn(movable, int(spill.over)):
            trial.widen(request, spill)
    trial.undo_needless()
    return trial.settled()


# One step that a request was widened by: its zone before, and the excess it resolves.
_Step: TypeAlias = tuple[int, Spill]


class _Trial:
    """A mutable copy of a ledger that has the new grant already.

    Only the page sizes of that grant can be exceeded: widening others takes no
    memory from any request.
    """

    def __init__(self, newcomer: MemoryGrant, ledger: MemoryLedger) -> None:
        self._layout = ledger.layout
        self._pages = [page for page, _ in newcomer.request.demand]
        self._grants = ledger.grants.copy()
        self._steps: dict[str, list[_Step]] = {}
        self._zones: dict[str, int] = {}  # of widened requests
        self._accounts = ledger.accounts.copy()

    def spill(self) -> Spill | None:
        """Return the first excess, in order of page size."""
        for page in self._pages:
            if nodes := self._accounts.overfull(page):
                return Spill(NodeSet(nodes), page, Bytes(-self._left(nodes, page)))
        return None

    def movable(self, spill: Spill) -> list[Row]:
        """Return the requests that can be widened beyond the nodes of an excess."""
        outside, moved = ~spill.nodes.bits, self._zones
        rows = self._accounts.rows(spill.page_size)
        stayed = [
            row
            for zone in rows
            if not zone & outside
            for row in rows[zone]
            if row[-1] & outside and row[-2] not in moved
        ]
        inside = [request for request in moved if not moved[request] & outside]
        again = [row for request in inside for row in self._row(request, spill)]
        return sorted(stayed + again)

    def widen(self, request: str, spill: Spill) -> None:
        """Widen a request step by step until it reaches beyond the excess."""
        grant, steps = self._grants[request], self._steps.setdefault(request, [])
        before = zone = self._zones.get(request, grant.zone.bits)
        while not zone & ~spill.nodes.bits:
            steps.append((zone, spill))
            zone = widened(grant, zone, self._layout)
        self._accounts.move(grant.request, before, zone)
        self._zones[request] = zone

    def undo_needless(self) -> None:
        """Undo steps that turned out to be unnecessary, important requests first.

        These were widened last. With a single widened request each step was needed.
        """
        if len(self._steps) > 1:
            for request in reversed(tuple(self._steps)):
                self._narrow(request)

    def settled(self) -> Settled:
        """Return the resulting ledger and the widened requests."""
        moved = []
        for request in self._steps:
            old, zone = self._grants[request], NodeSet(self._zones[request])
            moved.append((old, MemoryGrant(old.request, zone, old.kinds, old.age)))
        self._accounts.replace_rows(moved)
        self._grants.update((to.request.id, to) for _, to in moved)
        ledger = MemoryLedger(
            self._layout, MappingProxyType(self._grants), self._accounts
        )
        moved.sort(key=lambda pair: pair[0].age)
        return ledger, tuple(self._widening(*pair) for pair in moved)

    def _widening(self, grant: MemoryGrant, to: MemoryGrant) -> Widening:
        request = grant.request.id
        _, why = self._steps[request][-1]
        return Widening(request, grant.zone, to.zone, why)

    def _row(self, request: str, spill: Spill) -> Iterator[Row]:
        grant, zone = self._grants[request], self._zones[request]
        amount = grant.request.wants(spill.page_size)
        reach = reach_of(grant, self._layout)
        if amount and reach & ~spill.nodes.bits:
            yield row_of(grant, zone, amount, reach)

    def _narrow(self, request: str) -> None:
        """Undo as many steps of a request as possible while all requests fit."""
        mine, steps = self._grants[request].request, self._steps[request]
        zone = self._zones[request]
        for back, (before, why) in enumerate(steps):
            page = why.page_size
            left = self._left(why.nodes.bits, page)
            # Checking one excess first is cheaper than a move.
            if mine.wants(page) <= left and self._accounts.move(mine, zone, before):
                self._zones[request] = before
                del steps[back:]
                break
        if not steps:
            del self._steps[request]

    def _left(self, nodes: int, page: Bytes) -> int:
        """Return the free bytes of some nodes, negative for an excess."""
        return self._layout.total(nodes, page) - self._accounts.inside(nodes, page)


def _in_turn(movable: list[Row], missing: int) -> Iterator[str]:
    """Yield the least important requests until enough is freed.

    The lowest priority comes first, then the widest zone, which has the least locality
    to lose. Then the smallest that suffices alone, or else the largest, so that few
    are widened; of equal ones the youngest.
    """
    while movable and missing > 0:
        priority, width, *_ = movable[0]
        end = bisect_left(movable, (priority, width + 1))
        while end and missing > 0:
            at = bisect_left(movable, (priority, width, missing), hi=end)
            if at == end:
                largest = movable[end - 1][2]
                at = bisect_left(movable, (priority, width, largest), hi=end)
            *_, amount, _, request, _ = movable.pop(at)
            yield request
            missing -= amount
            end -= 1


def _shortage(newcomer: MemoryGrant, counted: MemoryLedger) -> MemoryShort | None:
    """Return the error for a grant that does not fit with all others fully widened.

    Its nodes are the smallest set that *newcomer* is confined to and that is too small
    for it and all other requests that are confined to it. None if it fits.

    *counted* has the grant already.
    """
    layout, mine = counted.layout, newcomer.request
    reach = reach_of(newcomer, layout)
    for page, wanted in mine.demand:
        others = counted.accounts.reaches(page).copy()
        others[reach, newcomer.is_fixed] -= wanted
        amounts: Counter[int] = Counter()
        for (zone, _), amount in others.items():
            amounts[zone] += amount
        fill, _ = filled(+amounts, layout.sizes(page))
        if fill.lay(reach, wanted):
            nodes = fill.reached
            inside = [
                (is_fixed, amount)
                for (zone, is_fixed), amount in others.items()
                if not zone & ~nodes
            ]
            return MemoryShort(
                title=mine.title,
                wanted=Bytes(wanted),
                page_size=page,
                nodes=NodeSet(nodes),
                capacity=Bytes(layout.total(nodes, page)),
                promised=Bytes(sum(amount for _, amount in inside)),
                reserved=Bytes(sum(amount for is_fixed, amount in inside if is_fixed)),
                strict=mine.strict,
            )
    return None
