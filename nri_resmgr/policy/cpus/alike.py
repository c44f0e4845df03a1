"""The best pick where all CPUs are alike and only groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter

from nri_resmgr.policy.cpus.bounds import bound
from nri_resmgr.policy.cpus.pairs import Pairs
from nri_resmgr.policy.cpus.places import every_place, tightest, zone_of
from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.policy.cpus.windows import windows
from nri_resmgr.values import CpuSet

# Prices by size of the pick.
_Prices = dict[int, int]


class Alike:
    """One exact search.

    The deepest groups that can hold the request alone are the candidates. Inside
    of one, prices of picks are added up from the cores, for those sizes only
    that a best pick can take out of a group: see `windows`.

    Args:
        problem: One whose CPUs are alike, at prices that count all levels.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last = len(problem.index.partitions) - 1
        self._pairs = Pairs(problem)
        # The most CPUs that a touched group leaves, per depth.
        self._any_slack = [problem.take.bit_count()] * (self._last + 1)
        self._slacks = self._any_slack
        # Per group: its kids, and what each gives to a pick of so many out of
        # those up to it.
        self._given: dict[tuple[int, int], list[tuple[int, Mapping[int, int]]]] = {}

    def beside(self) -> CpuSet:
        """Return the best pick where some CPUs are held."""
        depth, place = zone_of(self._problem)
        if depth < self._last:
            self._inside(depth, place, *bound(self._problem, self._pairs, depth, place))
        return CpuSet(self._bits(depth, place, self._problem.count))

    def best(self, depth: int) -> CpuSet:
        """Return the best pick; *depth* is the deepest with a group that holds it."""
        problem = self._problem
        places = tightest(problem, depth)
        place = places[0]
        if depth < self._last:
            price, place = self._cheapest(depth, places)
            if depth and not self._touches(price, self._ideal(depth)):
                _, place = self._cheapest(depth, every_place(problem, depth))
        return CpuSet(self._bits(depth, place, problem.count))

    def _cheapest(self, depth: int, places: Iterable[int]) -> tuple[int, int]:
        """Return the least price and the first place that has it."""
        problem, best = self._problem, (0, -1)
        bounds = [(*bound(problem, self._pairs, depth, at), at) for at in places]
        bounds.sort(key=itemgetter(0))
        for touched, slacks, place in bounds:
            if best[1] >= 0 and 2 * (touched - best[0]) > problem.costs.touch[-1]:
                break
            around = self._around(depth, place)
            price = around + self._inside(depth, place, touched, slacks)
            if best[1] < 0 or (price, place) < best:
                best = price, place
        return best

    def _around(self, depth: int, place: int) -> int:
        """Price the room of a group and of those around it."""
        index, free = self._problem.index, self._problem.free
        price = 0
        for outer, each in enumerate(self._problem.costs.room[: depth + 1]):
            around = index.ancestors[depth][outer][place]
            mask = index.partitions[outer].groups[around]
            price += each * (mask & free).bit_count()
        return price

    def _inside(self, depth: int, place: int, touched: int, slacks: list[int]) -> int:
        """Price the pick out of a place, without the place itself.

        If there is one that touches as few groups as the bound, then it is found
        among those that leave no more CPUs than that allows.
        """
        count = self._problem.count
        self._slacks = slacks
        price = self._joined(depth, place, count, count).get(count)
        if price is None or not self._touches(price, touched):
            self._slacks = self._any_slack
            price = self._joined(depth, place, count, count)[count]
        return price

    def _touches(self, price: int, touched: int) -> bool:
        """Tell whether a price is for no more groups than *touched* is."""
        # What is left are the digits of room, in all less than half of a core.
        return 2 * (price - touched) < self._problem.costs.touch[self._last]

    def _ideal(self, depth: int) -> int:
        """Price the fewest groups that a pick touches where all are free."""
        touch, largest = self._problem.costs.touch, self._problem.index.largest
        return sum(
            touch[below] * -(-self._problem.count // largest[below])
            for below in range(depth + 1, self._last + 1)
        )

    def _joined(self, depth: int, at: int, low: int, high: int) -> _Prices:
        """Price the best picks of *low* to *high* CPUs out of a group's kids."""
        problem, index = self._problem, self._problem.index
        mask = index.partitions[depth].groups[at]
        if depth == self._last - 1 and self._pairs.knows(mask):
            return self._pairs.prices(mask, low, high)
        masks = index.partitions[depth + 1].groups
        kids = [
            (kid, count, bool(masks[kid] & problem.held))
            for kid in index.within[depth][at][0]
            if (count := (masks[kid] & problem.take).bit_count())
        ]
        useful = list(windows(kids, low, high, self._slacks[depth + 1]))
        rest = sum(most for _, _, most in useful)
        reached = {0: 0}
        trail = self._given[depth, at] = []
        for kid, least, most in useful:
            rest -= most
            prices = self._prices(depth + 1, kid, least, most)
            reached, given = _both(reached, prices, low - rest, high)
            trail.append((kid, given))
        return reached

    def _prices(self, depth: int, at: int, low: int, high: int) -> _Prices:
        """Price the best picks of *low* to *high* CPUs out of a group."""
        problem, costs = self._problem, self._problem.costs
        mask = problem.index.partitions[depth].groups[at]
        own = 0
        if not mask & problem.held:
            room = (mask & problem.free).bit_count()
            own = costs.touch[depth] + costs.room[depth] * room
        if depth == self._last:
            return dict.fromkeys(range(low, high + 1), own)
        inside = self._joined(depth, at, low, high)
        return {size: price + own for size, price in inside.items() if size >= low}

    def _bits(self, depth: int, at: int, size: int) -> int:
        """Follow what each group gives, from the last one back."""
        index = self._problem.index
        mask = index.partitions[depth].groups[at]
        if depth == self._last:
            return CpuSet(mask & self._problem.take).lowest(size).bits
        if depth == self._last - 1 and self._pairs.knows(mask):
            return self._pairs.bits(mask, index.within[depth][at][0], size)
        bits = 0
        for kid, given in reversed(self._given[depth, at]):
            if gift := given[size]:
                bits |= self._bits(depth + 1, kid, gift)
                size -= gift
        return bits


def _both(
    before: _Prices, prices: _Prices, low: int, high: int
) -> tuple[_Prices, _Prices]:
    """Join one more group; of equal prices, the one where it gives less counts."""
    total = {size: price for size, price in before.items() if size >= low}
    given = dict.fromkeys(total, 0)
    for gift in sorted(prices):
        price = prices[gift]
        for size, paid in before.items():
            both = size + gift
            if low <= both <= high and (
                both not in total or paid + price < total[both]
            ):
                total[both] = paid + price
                given[both] = gift
    return total, given
