"""The best pick where CPUs are interchangeable and only groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import add, itemgetter
from typing import Final

from nri_resmgr.policy.cpus.limits import CoreFormulas, PickBound, bound, group_limits
from nri_resmgr.policy.cpus.problem import (
    PickProblem,
    every_place,
    tightest,
    zone_of,
)
from nri_resmgr.values import CpuSet

# Prices by size of the pick.
Prices = dict[int, int]

# From so many pairs of sizes on, the lists of `_merge_many` pay off.
_MANY: Final = 256


class UniformSearch:
    """An exact search where CPUs are interchangeable and prices count all levels.

    Candidates are the deepest groups that can hold the request alone. Inside of one,
    prices of picks are summed up from the cores, for those sizes only that a best
    pick can take out of a group: see `group_limits`.
    """

    def __init__(self, problem: PickProblem) -> None:
        self._problem = problem
        self._last = len(problem.index.partitions) - 1
        self._formulas = CoreFormulas(problem)
        # Per depth: the most CPUs of a touched group that are not taken.
        self._any_leftover = [problem.take.bit_count()] * (self._last + 1)
        self._leftovers = self._any_leftover
        # The price of the free CPUs in a group and in those around it.
        self._rooms: dict[tuple[int, int], int] = {}
        # Per group: each child, with the CPUs that it contributes to the best pick of
        # every size out of the children up to it.
        self._contributed: dict[
            tuple[int, int], list[tuple[int, Mapping[int, int]]]
        ] = {}

    def beside(self) -> CpuSet:
        """Return the best pick where some CPUs are held."""
        depth, place = zone_of(self._problem)
        if depth < self._last:
            touched, _, leftovers = bound(self._problem, self._formulas, depth, place)
            self._inside(depth, place, touched, leftovers)
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
        """Return the least price and the first place that has it, or *found*."""
        bounds = self._bounds(depth, places)
        bounds.sort(key=itemgetter(0))
        for touched, tied in groupby(bounds, itemgetter(0)):
            if found and not self._touches(touched, found[0][0]):
                break
            rows = sorted((self._around(depth, at), at, row) for _, at, row in tied)
            for around, place, leftovers in rows:
                least = around + touched + self._least_room(depth, place)
                if not found or (least, place) < found[0]:
                    price = around + self._inside(depth, place, touched, leftovers)
                    found = [min([*found, (price, place)])]
        return found

    def _bounds(self, depth: int, places: Iterable[int]) -> list[PickBound]:
        """Return the bound of each place."""
        problem, formulas = self._problem, self._formulas
        masks, touch = problem.index.partitions[depth].groups, problem.costs.touch[-1]
        cores_next = depth == self._last - 1
        return [
            (formulas.fewest(masks[at])[0] * touch, at, self._any_leftover)
            if cores_next and formulas.applies_to(masks[at])
            else bound(problem, formulas, depth, at)
            for at in places
        ]

    def _around(self, depth: int, place: int) -> int:
        """Price the free CPUs in a group and in those around it."""
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
        """Return the least price for free CPUs in the groups of any pick in a place."""
        problem = self._problem
        room = problem.count
        if problem.costs.room[0] < 0:
            mask = problem.index.partitions[depth].groups[place]
            room = (mask & problem.free).bit_count()
        return room * sum(problem.costs.room[depth + 1 :])

    def _inside(
        self, depth: int, place: int, touched: int, leftovers: list[int]
    ) -> int:
        """Price the best pick inside of a place, without the place itself.

        A pick that touches as few groups as the bound leaves no more CPUs than the
        bound allows, so these are searched first. If none is as cheap, the search is
        repeated without the limit from the first level that needs more groups.
        """
        problem, count = self._problem, self._problem.count
        mask = problem.index.partitions[depth].groups[place]
        has_formula = self._formulas.applies_to(mask)
        if has_formula and depth == self._last - 1:
            return self._formulas.prices(mask, count, count, 0)[count]
        self._leftovers = leftovers
        price = self._joined(depth, place, count, count).get(count)
        broken = depth + 1
        if price is not None:
            over = 2 * (price - touched)
            while over <= problem.costs.touch[broken]:
                if broken == self._last:
                    return price
                broken += 1
            # The formulas do not use the leftovers.
            if broken == self._last and has_formula:
                return price
        self._leftovers = leftovers[:broken] + self._any_leftover[broken:]
        return self._joined(depth, place, count, count)[count]

    def _touches(self, price: int, touched: int) -> bool:
        """Return whether a price is for no more groups than *touched* is."""
        # The remainder are the digits of free CPUs: less than half of a core's.
        return 2 * (price - touched) < self._problem.costs.touch[self._last]

    def _ideal(self, depth: int) -> int:
        """Price the fewest groups that a pick touches if all CPUs are free."""
        touch, largest = self._problem.costs.touch, self._problem.index.largest
        return sum(
            touch[below] * -(-self._problem.count // largest[below])
            for below in range(depth + 1, self._last + 1)
        )

    def _joined(self, depth: int, at: int, low: int, high: int) -> Prices:
        """Price the best picks of *low* to *high* CPUs out of a group's children."""
        problem, index = self._problem, self._problem.index
        masks = index.partitions[depth + 1].groups
        children = [
            (child, count, bool(masks[child] & problem.held))
            for child in index.within[depth][at][0]
            if (count := (masks[child] & problem.take).bit_count())
        ]
        if low == sum(count for _, count, _ in children):
            return {low: sum(self._whole(depth + 1, child) for child, _, _ in children)}
        useful = list(group_limits(children, low, high, self._leftovers[depth + 1]))
        rest = sum(most for _, _, most in useful)
        reached = {0: 0}
        trail = self._contributed[depth, at] = []
        for child, least, most in useful:
            rest -= most
            prices = self._prices(depth + 1, child, least, most)
            reached, given = merge_prices(reached, prices, low - rest, high)
            trail.append((child, given))
        return reached

    def _touch_price(self, depth: int, mask: int) -> int:
        """Price touching a group, without the groups inside."""
        problem, costs = self._problem, self._problem.costs
        if mask & problem.held:
            return 0
        room = (mask & problem.free).bit_count()
        return costs.touch[depth] + costs.room[depth] * room

    def _whole(self, depth: int, at: int) -> int:
        """Price a pick of all CPUs to take in a group."""
        index, take = self._problem.index, self._problem.take
        mask = index.partitions[depth].groups[at]
        touch = self._touch_price(depth, mask)
        if depth == self._last:
            return touch
        if depth == self._last - 1 and self._formulas.applies_to(mask):
            return touch + self._formulas.whole(mask)
        masks = index.partitions[depth + 1].groups
        children = [
            child for child in index.within[depth][at][0] if masks[child] & take
        ]
        return touch + sum(self._whole(depth + 1, child) for child in children)

    def _prices(self, depth: int, at: int, low: int, high: int) -> Prices:
        """Price the best picks of *low* to *high* CPUs out of a group."""
        mask = self._problem.index.partitions[depth].groups[at]
        touch = self._touch_price(depth, mask)
        if depth == self._last:
            return dict.fromkeys(range(low, high + 1), touch)
        if depth == self._last - 1 and self._formulas.applies_to(mask):
            return self._formulas.prices(mask, low, high, touch)
        inside = self._joined(depth, at, low, high)
        return {size: price + touch for size, price in inside.items() if size >= low}

    def _bits(self, depth: int, at: int, size: int) -> int:
        """Build the pick from what each child contributes, from the last one back."""
        index = self._problem.index
        mask = index.partitions[depth].groups[at]
        take = mask & self._problem.take
        if size == take.bit_count():
            return take
        if depth == self._last:
            return CpuSet(take).lowest(size).bits
        if depth == self._last - 1 and self._formulas.applies_to(mask):
            return self._formulas.bits(mask, index.within[depth][at][0], size)
        bits = 0
        for child, given in reversed(self._contributed[depth, at]):
            if part := given[size]:
                bits |= self._bits(depth + 1, child, part)
                size -= part
        return bits


def merge_prices(
    before: Prices, prices: Prices, low: int, high: int
) -> tuple[Prices, dict[int, int]]:
    """Merge the prices of picks out of earlier groups with those of one more group.

    Its picks have at least one CPU. Only sizes from *low* to *high* are needed.

    Returns:
        The least price by size, and how many CPUs of it this group contributes; of
        equal prices the one where it contributes fewer.
    """
    total = {size: price for size, price in before.items() if size >= low}
    given = dict.fromkeys(total, 0)
    if len(before) * len(prices) >= _MANY:
        found = _merge_many(before, prices, low, high)
        for both, (price, part) in found.items():
            if both not in total or price < total[both]:
                total[both] = price
                given[both] = part
        return total, given
    for part in sorted(prices):
        more = prices[part]
        for size, paid in before.items():
            both = size + part
            if low <= both <= high and (both not in total or paid + more < total[both]):
                total[both] = paid + more
                given[both] = part
    return total, given


def _merge_many(
    before: Prices, prices: Prices, low: int, high: int
) -> dict[int, tuple[int, int]]:
    never = max(before.values()) + max(prices.values()) + 1
    first, last = min(before), max(before)
    least, most = min(prices), max(prices)
    falling = [before.get(size, never) for size in range(last, first - 1, -1)]
    rising = [prices.get(part, never) for part in range(least, most + 1)]
    found = {}
    for both in range(max(low, first + least), min(high, last + most) + 1):
        start, stop = max(least, both - last), min(most, both - first) + 1
        at = last - both + start
        sums = list(
            map(
                add,
                falling[at : at + stop - start],
                rising[start - least : stop - least],
            )
        )
        price = min(sums)
        if price < never:
            found[both] = price, start + sums.index(price)
    return found
