"""The cheapest pick of CPUs that differ, from the cores up to the machine."""

from __future__ import annotations

from operator import add

from nri_resmgr.policy.cpus.index import CpuGroup
from nri_resmgr.policy.cpus.problem import PickProblem
from nri_resmgr.values import CpuSet

# Price and CPUs of the best pick of 0, 1, 2, ... CPUs out of one group.
_Best = tuple[list[int], list[int]]


def cheapest_pick(problem: PickProblem) -> CpuSet:
    """Return the cheapest pick; of equal ones, lower groups contribute more.

    Takes about as many steps as CPUs to take times CPUs requested.
    """
    return CpuSet(_best(problem.index.root, problem)[1][problem.count])


def _best(group: CpuGroup, problem: PickProblem) -> _Best:
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


def _core(group: CpuGroup, problem: PickProblem) -> _Best:
    """Return the picks out of a core; out of a group of cores only the empty one."""
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
    """Return the best picks out of both; at equal prices *a* contributes more."""
    (prices_a, picks_a), (prices_b, picks_b) = a, b
    most_a, most_b = len(prices_a) - 1, len(prices_b) - 1
    falling = prices_a[::-1]
    prices, picks = [], []
    for size in range(min(most_a + most_b, count) + 1):
        # By the contribution of b, ascending: the first of equal prices counts.
        low, high = max(0, size - most_a), min(size, most_b)
        start = most_a - size + low
        sums = list(
            map(add, falling[start : start + high - low + 1], prices_b[low : high + 1])
        )
        price = min(sums)
        part = low + sums.index(price)
        prices.append(price)
        picks.append(picks_a[size - part] | picks_b[part])
    return prices, picks
