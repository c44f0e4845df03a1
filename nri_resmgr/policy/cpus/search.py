"""The cheapest pick of every size, group by group from the cores up."""

from __future__ import annotations

import attrs

from nri_resmgr.policy.cpus.costs import Costs
from nri_resmgr.policy.cpus.index import Group
from nri_resmgr.values import CpuSet

# Price and CPUs of the best pick of 0, 1, 2, ... CPUs out of one group.
_Best = list[tuple[int, int]]


@attrs.frozen(eq=False)
class Search:
    """One search: *count* CPUs out of *free*, beside those *held*, at *costs*."""

    free: int
    held: int
    count: int
    costs: Costs

    def cheapest(self, group: Group) -> CpuSet:
        """Return the cheapest pick; of equal ones, lower groups give more."""
        return CpuSet(self._best(group)[self.count][1])

    def _best(self, group: Group) -> _Best:
        free = group.bits & self.free
        if not free:
            return [(0, 0)]
        best: _Best = [(0, 0)]
        if not group.children:
            best = self._core(group)
        for child in group.children:
            if child.bits & free:
                best = _joined(best, self._best(child), self.count)
        if group.bits & self.held:
            return best
        costs = self.costs
        touch = costs.touch[group.depth] + costs.room[group.depth] * free.bit_count()
        return [best[0], *((price + touch, bits) for price, bits in best[1:])]

    def _core(self, core: Group) -> _Best:
        costs = self.costs
        free = core.bits & self.free
        price, bits = (costs.broken if free == core.bits else 0), 0
        beside = bool(core.bits & self.held)
        best: _Best = [(0, 0)]
        for mask, each in costs.cpus:
            for cpu in CpuSet(free & mask):
                price += each + costs.sibling * beside
                bits |= 1 << cpu
                best.append((price, bits))
                beside = True
        return best[: self.count + 1]


def _joined(a: _Best, b: _Best, count: int) -> _Best:
    """Return the best of both groups; on equal prices *a* gives more."""
    best: _Best = []
    for size in range(min(len(a) + len(b) - 1, count + 1)):
        most = min(size, len(a) - 1)
        least = max(0, size - len(b) + 1)
        price, taken = min(
            (a[part][0] + b[size - part][0], -part) for part in range(least, most + 1)
        )
        best.append((price, a[-taken][1] | b[size + taken][1]))
    return best
