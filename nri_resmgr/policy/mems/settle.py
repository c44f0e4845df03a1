"""Widen requests, least important first, until nothing is promised twice."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import attrs

from nri_resmgr.policy.mems.fill import overfull
from nri_resmgr.policy.mems.ledger import MemoryLedger, add_amounts, mutable_copy
from nri_resmgr.policy.mems.offer import Spill, Widening
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.policy.mems.shortage import shortage
from nri_resmgr.policy.mems.zones import reach_of, widened
from nri_resmgr.values import Bytes, NodeSet


@attrs.frozen
class Settled:
    """A ledger in which everybody fits, and who was widened for it."""

    ledger: MemoryLedger
    widened: tuple[Widening, ...]


def settle(grant: Grant, ledger: MemoryLedger) -> Settled:
    """Put *grant* into a ledger, in place of an older one of its request or anew.

    Whoever is widened could not have been spared by widening only requests of
    lower priority, and would not fit with any step less.

    Raises:
        MemoryShort: No widening makes room.
    """
    trial = _Trial(grant, ledger)
    while spill := trial.spill():
        movable = trial.movable(spill)
        if not movable:
            raise shortage(grant, ledger)
        for one in _in_turn(movable, spill):
            trial.widen(one, spill)
    trial.spare()
    return trial.settled()


@attrs.frozen
class _Step:
    """One ring that a request was widened by: where it was, and why it left."""

    before: Grant
    why: Spill


class _Trial:
    """A ledger that is being changed; it never leaves this module.

    Only the page sizes that the newcomer wants can become short: widening the
    others takes nothing from anybody.
    """

    def __init__(self, grant: Grant, ledger: MemoryLedger) -> None:
        self._layout = ledger.layout
        self._newcomer = grant
        self._grants = dict(ledger.grants)
        self._amounts = mutable_copy(ledger.amounts)
        self._steps: dict[str, list[_Step]] = {}
        if old := self._grants.get(grant.request.id):
            add_amounts(self._amounts, old, -1)
        self._grants[grant.request.id] = grant
        add_amounts(self._amounts, grant, 1)

    def spill(self) -> Spill | None:
        """Return the first shortage, in order of page size."""
        for page, _ in self._newcomer.request.demand:
            zones = self._amounts[page]
            if nodes := overfull(zones, self._layout.sizes(page)):
                return Spill(NodeSet(nodes), page, Bytes(self._over(nodes, page)))
        return None

    def movable(self, spill: Spill) -> list[Grant]:
        """Return who may leave the nodes of a shortage, and would help by it."""
        nodes, page = spill.nodes.bits, spill.page_size
        inside = {zone for zone in self._amounts[page] if not zone & ~nodes}
        return [
            grant
            for grant in self._grants.values()
            if grant.zone.bits in inside
            and grant.request.wants(page)
            and reach_of(grant, self._layout) & ~nodes
        ]

    def widen(self, grant: Grant, spill: Spill) -> None:
        """Widen *grant* ring by ring until it may be outside of the shortage."""
        steps = self._steps.setdefault(grant.request.id, [])
        zone = grant.zone.bits
        while not zone & ~spill.nodes.bits:
            steps.append(_Step(_with_zone(grant, zone), spill))
            zone = widened(grant, zone, self._layout)
        self._put(_with_zone(grant, zone))

    def spare(self) -> None:
        """Take back what turned out not to be needed, the important ones first.

        Those were widened last. A single request needs no look: it was widened
        for a shortage each time.
        """
        if len(self._steps) > 1:
            for request in reversed(tuple(self._steps)):
                self._narrow(self._grants[request])

    def settled(self) -> Settled:
        """Freeze it all."""
        changes = []
        for key, steps in self._steps.items():
            grant, first = self._grants[key], steps[0].before
            spill = steps[-1].why
            changes.append((grant.age, Widening(key, first.zone, grant.zone, spill)))
        changes.sort(key=lambda change: change[0])
        ledger = MemoryLedger(self._layout, self._grants, self._amounts)
        return Settled(ledger, tuple(change for _, change in changes))

    def _narrow(self, grant: Grant) -> None:
        """Go back as many steps as everybody still fits."""
        steps = self._steps[grant.request.id]
        for back, step in enumerate(steps):
            if grant.request.wants(step.why.page_size) > self._left(step.why):
                continue  # a look at one shortage is cheaper than one at all
            self._put(step.before)
            if not self.spill():
                del steps[back:]
                break
            self._put(grant)
        if not steps:
            del self._steps[grant.request.id]

    def _left(self, spill: Spill) -> int:
        """Return what is left of the nodes that were short."""
        return -self._over(spill.nodes.bits, spill.page_size)

    def _over(self, nodes: int, page: Bytes) -> int:
        zones = self._amounts[page]
        used = sum(zones[zone] for zone in zones if not zone & ~nodes)
        return used - self._layout.room(nodes, page)

    def _put(self, grant: Grant) -> None:
        add_amounts(self._amounts, self._grants[grant.request.id], -1)
        self._grants[grant.request.id] = grant
        add_amounts(self._amounts, grant, 1)


def _in_turn(movable: Iterable[Grant], spill: Spill) -> Iterator[Grant]:
    """Yield the least important ones, until enough is freed.

    The lowest priority goes first, then the widest zone: it has the least to
    lose. Then the smallest that is enough alone, or else the largest, so that
    few are touched; of equal ones the youngest.
    """
    missing, page = int(spill.over), spill.page_size
    for _, alike in itertools.groupby(sorted(movable, key=_rank), key=_rank):
        group = sorted((one.request.wants(page), -one.age, one) for one in alike)
        while group and missing > 0:
            at = bisect_left(group, missing, key=_amount)
            if at == len(group):
                at = bisect_left(group, group[-1][0], key=_amount)
            amount, _, grant = group.pop(at)
            yield grant
            missing -= amount


def _rank(grant: Grant) -> tuple[int, int]:
    return grant.request.priority, -len(grant.zone)


def _amount(row: tuple[int, int, Grant]) -> int:
    return row[0]


def _with_zone(grant: Grant, zone: int) -> Grant:
    return Grant(grant.request, NodeSet(zone), grant.kinds, grant.age)
