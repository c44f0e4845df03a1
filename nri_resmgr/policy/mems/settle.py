"""Widen requests, least important first, until nothing is promised twice."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TypeAlias

from nri_resmgr.policy.mems.accounts import Row, row_of
from nri_resmgr.policy.mems.errors import MemoryShort
from nri_resmgr.policy.mems.fill import filled
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.offer import Spill, Widening
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.policy.mems.zones import reach_of, widened
from nri_resmgr.values import Bytes, NodeSet

Settled: TypeAlias = tuple[MemoryLedger, tuple[Widening, ...]]
"""A ledger in which everybody fits, and who was widened for it."""


def settle(grant: Grant, ledger: MemoryLedger) -> Settled:
    """Put *grant* into a ledger, in place of an older one of its request or anew.

    Whoever is widened could not have been spared by widening only requests of
    lower priority, and would not fit with any step less.

    Raises:
        MemoryShort: No widening makes room.
    """
    demand = grant.request.demand
    for page, _ in demand:
        ledger.accounts.overfull(page)  # worked out once, then copied on
    counted = ledger.count(grant)
    if not [page for page, _ in demand if counted.accounts.overfull(page)]:
        return counted, ()
    if ledger.accounts.learn_rows(ledger.grants.values()):
        counted = ledger.count(grant)
    trial = _Trial(grant, counted)
    while spill := trial.spill():
        movable = trial.movable(spill)
        if not movable:
            raise shortage(grant, ledger)
        for request in _in_turn(movable, int(spill.over)):
            trial.widen(request, spill)
    trial.spare()
    return trial.settled()


# One ring that a request was widened by: where it was, and why it left.
_Step: TypeAlias = tuple[int, Spill]


class _Trial:
    """A ledger that is being changed; it never leaves this module.

    Only the page sizes that the newcomer wants can become short: widening the
    others takes nothing from anybody.

    Args:
        newcomer: Whose grant is new.
        ledger: All grants, this one too.
    """

    def __init__(self, newcomer: Grant, ledger: MemoryLedger) -> None:
        self._layout = ledger.layout
        self._pages = [page for page, _ in newcomer.request.demand]
        self._grants = ledger.grants.copy()
        self._steps: dict[str, list[_Step]] = {}
        self._zones: dict[str, int] = {}  # of who was widened
        self._accounts = ledger.accounts.copy()

    def spill(self) -> Spill | None:
        """Return the first shortage, in order of page size."""
        for page in self._pages:
            if nodes := self._accounts.overfull(page):
                return Spill(NodeSet(nodes), page, Bytes(-self._left(nodes, page)))
        return None

    def movable(self, spill: Spill) -> list[Row]:
        """Return who may leave the nodes of a shortage, and would help by it."""
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
        """Widen a request ring by ring until it may be outside of the shortage."""
        grant, steps = self._grants[request], self._steps.setdefault(request, [])
        before = zone = self._zones.get(request, grant.zone.bits)
        while not zone & ~spill.nodes.bits:
            steps.append((zone, spill))
            zone = widened(grant, zone, self._layout)
        self._accounts.move(grant.request, before, zone)
        self._zones[request] = zone

    def spare(self) -> None:
        """Take back what turned out not to be needed, the important ones first.

        Those were widened last. A single request needs no look: it was widened
        for a shortage each time.
        """
        if len(self._steps) > 1:
            for request in reversed(tuple(self._steps)):
                self._narrow(request)

    def settled(self) -> Settled:
        """Freeze it all."""
        moved = [(self._grants[request], self._now(request)) for request in self._steps]
        self._accounts.reseat(moved)
        self._grants.update((to.request.id, to) for _, to in moved)
        ledger = MemoryLedger(
            self._layout, MappingProxyType(self._grants), self._accounts
        )
        moved.sort(key=lambda pair: pair[0].age)
        return ledger, tuple(self._widening(*pair) for pair in moved)

    def _now(self, request: str) -> Grant:
        grant, zone = self._grants[request], NodeSet(self._zones[request])
        return Grant(grant.request, zone, grant.kinds, grant.age)

    def _widening(self, grant: Grant, to: Grant) -> Widening:
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
        """Go back as many steps as everybody still fits."""
        mine, steps = self._grants[request].request, self._steps[request]
        zone = self._zones[request]
        for back, (before, why) in enumerate(steps):
            page = why.page_size
            left = self._left(why.nodes.bits, page)
            # A look at one shortage is cheaper than one at all of them.
            if mine.wants(page) <= left and self._accounts.move(mine, zone, before):
                self._zones[request] = before
                del steps[back:]
                break
        if not steps:
            del self._steps[request]

    def _left(self, nodes: int, page: Bytes) -> int:
        """Return what is left of some nodes, less than 0 where they are short."""
        return self._layout.room(nodes, page) - self._accounts.inside(nodes, page)


def _in_turn(movable: list[Row], missing: int) -> Iterator[str]:
    """Yield the least important ones, until enough is freed.

    The lowest priority goes first, then the widest zone: it has the least to
    lose. Then the smallest that is enough alone, or else the largest, so that
    few are touched; of equal ones the youngest.
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


def shortage(newcomer: Grant, ledger: MemoryLedger) -> MemoryShort:
    """Tell what fits at most, if all others are widened as far as they may be.

    The nodes named are the fewest that *newcomer* cannot leave and that are too
    small for it and for those who cannot leave them either.
    """
    layout, mine = ledger.layout, newcomer.request
    others = [one for one in ledger.grants.values() if one.request.id != mine.id]
    for page, wanted in mine.demand:
        amounts = _reached(others, page, layout)
        fill, _ = filled(amounts, layout.sizes(page))
        if fill.lay(reach_of(newcomer, layout), wanted):
            nodes = fill.reached
            inside = [one for one in others if not reach_of(one, layout) & ~nodes]
            fixed = [one for one in inside if one.is_fixed]
            return MemoryShort(
                title=mine.title,
                wanted=Bytes(wanted),
                page_size=page,
                nodes=NodeSet(nodes),
                capacity=Bytes(layout.room(nodes, page)),
                promised=_sum(inside, page),
                reserved=_sum(fixed, page),
                strict=mine.strict,
            )
    msg = f"{mine.title} fits after all"
    raise ValueError(msg)


def _reached(
    grants: Sequence[Grant], page: Bytes, layout: MemoryLayout
) -> dict[int, int]:
    """Add up what is promised, each request as wide as it may ever be."""
    amounts: dict[int, int] = {}
    for grant in grants:
        if amount := grant.request.wants(page):
            reach = reach_of(grant, layout)
            amounts[reach] = amounts.get(reach, 0) + amount
    return amounts


def _sum(grants: Sequence[Grant], page: Bytes) -> Bytes:
    return Bytes(sum(grant.request.wants(page) for grant in grants))
