"""The best pick where all CPUs are alike and only groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from nri_resmgr.policy.cpus.bounds import Bound, bound
from nri_resmgr.policy.cpus.joining import Prices, joined
from nri_resmgr.policy.cpus.pairs import Pairs
from nri_resmgr.policy.cpus.places import every_place, tightest, zone_of
from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.policy.cpus.windows import windows
from nri_resmgr.values import CpuSet


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
        # The price of the room in and around a group.
        self._rooms: dict[tuple[int, int], int] = {}
        # Per group: its kids, and what each gives to a pick of so many out of
        # those up to it.
        self._given: dict[tuple[int, int], list[tuple[int, Mapping[int, int]]]] = {}

    def beside(self) -> CpuSet:
        """Return the best pick where some CPUs are held."""
        depth, place = zone_of(self._problem)
        if depth < self._last:
            touched, _, slacks = bound(self._problem, self._pairs, depth, place)
            self._inside(depth, place, touched, slacks)
        return CpuSet(self._bits(depth, place, self._problem.count))

    def best(self, depth: int) -> CpuSet:
        """Return the best pick; *depth* is the deepest with a group that holds it."""
        problem = self._problem
        near = tightest(problem, depth)
        if depth == self._last:
            return CpuSet(self._bits(depth, near[0], problem.count))
        found = self._cheapest(depth, near, [])
        if not self._touches(found[0][0], self._ideal(depth)):
            rest = set(every_place(problem, depth)).difference(near)
            found = self._cheapest(depth, rest, found)
        return CpuSet(self._bits(depth, found[0][1], problem.count))

    def _cheapest(
        self, depth: int, places: Iterable[int], found: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Return the least price and the first place that has it, or what was found."""
        bounds = self._bounds(depth, places)
        bounds.sort(key=itemgetter(0))
        for touched, alike in groupby(bounds, itemgetter(0)):
            if found and not self._touches(touched, found[0][0]):
                break
            rows = sorted((self._around(depth, at), at, row) for _, at, row in alike)
            for around, place, slacks in rows:
                least = around + touched + self._least_room(depth, place)
                if not found or (least, place) < found[0]:
                    price = around + self._inside(depth, place, touched, slacks)
                    found = [min([*found, (price, place)])]
        return found

    def _bounds(self, depth: int, places: Iterable[int]) -> list[Bound]:
        """Return what touching costs at least inside of places, and their slacks."""
        problem, pairs = self._problem, self._pairs
        masks, touch = problem.index.partitions[depth].groups, problem.costs.touch[-1]
        cores_next = depth == self._last - 1
        return [
            (pairs.fewest(masks[at])[0] * touch, at, self._any_slack)
            if cores_next and pairs.knows(masks[at])
            else bound(problem, pairs, depth, at)
            for at in places
        ]

    def _around(self, depth: int, place: int) -> int:
        """Price the room of a group and of those around it."""
        known = self._rooms.get((depth, place))
        if known is not None:
            return known
        index, problem = self._problem.index, self._problem
        room = (index.partitions[depth].groups[place] & problem.free).bit_count()
        price = problem.costs.room[depth] * room
        if depth:
            outer = index.ancestors[depth][depth - 1][place]
            price += self._around(depth - 1, outer)
        self._rooms[depth, place] = price
        return price

    def _least_room(self, depth: int, place: int) -> int:
        """Price the room inside of a group that a pick has at least."""
        problem = self._problem
        room = problem.count
        if problem.costs.room[0] < 0:
            mask = problem.index.partitions[depth].groups[place]
            room = (mask & problem.free).bit_count()
        return room * sum(problem.costs.room[depth + 1 :])

    def _inside(self, depth: int, place: int, touched: int, slacks: list[int]) -> int:
        """Price the pick out of a place, without the place itself.

        If there is one that touches as few groups as the bound, then it is found
        among those that leave no more CPUs than that allows. Else it touches more
        at the first level where this one does, or further down.
        """
        problem, count = self._problem, self._problem.count
        mask = problem.index.partitions[depth].groups[place]
        has_formula = self._pairs.knows(mask)
        if has_formula and depth == self._last - 1:
            return self._pairs.prices(mask, count, count, 0)[count]
        self._slacks = slacks
        price = self._joined(depth, place, count, count).get(count)
        broken = depth + 1
        if price is not None:
            over = 2 * (price - touched)
            while over <= problem.costs.touch[broken]:
                if broken == self._last:
                    return price
                broken += 1
            # The formulas do without slack.
            if broken == self._last and has_formula:
                return price
        self._slacks = slacks[:broken] + self._any_slack[broken:]
        return self._joined(depth, place, count, count)[count]

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

    def _joined(self, depth: int, at: int, low: int, high: int) -> Prices:
        """Price the best picks of *low* to *high* CPUs out of a group's kids."""
        problem, index = self._problem, self._problem.index
        masks = index.partitions[depth + 1].groups
        kids = [
            (kid, count, bool(masks[kid] & problem.held))
            for kid in index.within[depth][at][0]
            if (count := (masks[kid] & problem.take).bit_count())
        ]
        if low == sum(count for _, count, _ in kids):
            return {low: sum(self._whole(depth + 1, kid) for kid, _, _ in kids)}
        useful = list(windows(kids, low, high, self._slacks[depth + 1]))
        rest = sum(most for _, _, most in useful)
        reached = {0: 0}
        trail = self._given[depth, at] = []
        for kid, least, most in useful:
            rest -= most
            prices = self._prices(depth + 1, kid, least, most)
            reached, given = joined(reached, prices, low - rest, high)
            trail.append((kid, given))
        return reached

    def _own(self, depth: int, mask: int) -> int:
        """Price touching a group, without what is inside."""
        problem, costs = self._problem, self._problem.costs
        if mask & problem.held:
            return 0
        room = (mask & problem.free).bit_count()
        return costs.touch[depth] + costs.room[depth] * room

    def _whole(self, depth: int, at: int) -> int:
        """Price all that can be taken of a group."""
        index, take = self._problem.index, self._problem.take
        mask = index.partitions[depth].groups[at]
        own = self._own(depth, mask)
        if depth == self._last:
            return own
        if depth == self._last - 1 and self._pairs.knows(mask):
            return own + self._pairs.whole(mask)
        masks = index.partitions[depth + 1].groups
        kids = [kid for kid in index.within[depth][at][0] if masks[kid] & take]
        return own + sum(self._whole(depth + 1, kid) for kid in kids)

    def _prices(self, depth: int, at: int, low: int, high: int) -> Prices:
        """Price the best picks of *low* to *high* CPUs out of a group."""
        mask = self._problem.index.partitions[depth].groups[at]
        own = self._own(depth, mask)
        if depth == self._last:
            return dict.fromkeys(range(low, high + 1), own)
        if depth == self._last - 1 and self._pairs.knows(mask):
            return self._pairs.prices(mask, low, high, own)
        inside = self._joined(depth, at, low, high)
        return {size: price + own for size, price in inside.items() if size >= low}

    def _bits(self, depth: int, at: int, size: int) -> int:
        """Follow what each group gives, from the last one back."""
        index = self._problem.index
        mask = index.partitions[depth].groups[at]
        take = mask & self._problem.take
        if size == take.bit_count():
            return take
        if depth == self._last:
            return CpuSet(take).lowest(size).bits
        if depth == self._last - 1 and self._pairs.knows(mask):
            return self._pairs.bits(mask, index.within[depth][at][0], size)
        bits = 0
        for kid, given in reversed(self._given[depth, at]):
            if gift := given[size]:
                bits |= self._bits(depth + 1, kid, gift)
                size -= gift
        return bits
