"""The cheapest pick of every size, group by group from the cores up."""

from __future__ import annotations

from operator import add

from nri_resmgr.policy.cpus.index import Group
from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.values import CpuSet

# Price and CPUs of the best pick of 0, 1, 2, ... CPUs out of one group.
_Best = tuple[list[int], list[int]]


def cheapest(problem: Problem) -> CpuSet:
    """Return the cheapest pick; of equal ones, lower groups give more.

    Costs about as many steps as CPUs to take times CPUs wanted.
    """
    return CpuSet(_best(problem.index.root, problem)[1][problem.count])


def _best(group: Group, problem: Problem) -> _Best:
    best = _core(group, problem)
    for child in group.children:
        if child.bits & problem.take:
            best = _joined(best, _best(child, problem), problem.count)
    if group.bits & problem.held:
        return best
    costs = problem.costs
    room = (group.bits & problem.free).bit_count()
    touch = costs.touch[group.depth] + costs.room[group.depth] * room
    prices, picks = best
    return [0, *(price + touch for price in prices[1:])], picks


def _core(group: Group, problem: Problem) -> _Best:
    """Return the picks out of a core, of other groups only the empty one."""
    prices, picks = [0], [0]
    if group.children:
        return prices, picks
    costs = problem.costs
    bits, beside = 0, bool(group.bits & problem.held)
    idle = group.bits & problem.free == group.bits and not beside
    price = costs.broken if idle else 0
    for mask, each in costs.cpus:
        for cpu in CpuSet(group.bits & problem.take & mask):
            price += each + (costs.sibling if beside else 0)
            bits |= 1 << cpu
            prices.append(price)
            picks.append(bits)
            beside = True
    return prices[: problem.count + 1], picks[: problem.count + 1]


def _joined(a: _Best, b: _Best, count: int) -> _Best:
    """Return the best of both groups; on equal prices *a* gives more."""
    (prices_a, picks_a), (prices_b, picks_b) = a, b
    most_a, most_b = len(prices_a) - 1, len(prices_b) - 1
    falling = prices_a[::-1]
    prices, picks = [], []
    for size in range(min(most_a + most_b, count) + 1):
        # Pairs by what b gives, ascending: the first of equal prices is taken.
        low, high = max(0, size - most_a), min(size, most_b)
        start = most_a - size + low
        sums = list(
            map(add, falling[start : start + high - low + 1], prices_b[low : high + 1])
        )
        price = min(sums)
        given = low + sums.index(price)
        prices.append(price)
        picks.append(picks_a[size - given] | picks_b[given])
    return prices, picks
