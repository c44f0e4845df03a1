"""Limits of a best pick: what it costs at least, and what each group gives to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from nri_resmgr.policy.cpus.core_formulas import CoreFormulas
from nri_resmgr.policy.cpus.problem import PickProblem

# The least price of touching groups inside of a group, the index of that group, and
# per depth the most CPUs that a touched group leaves at this price.
PickBound = tuple[int, int, list[int]]

# A group, the CPUs to take in it, and whether touching it costs nothing.
ChildGroup = tuple[int, int, bool]


def bound(
    problem: PickProblem, formulas: CoreFormulas, depth: int, place: int
) -> PickBound:
    """Bound a pick in a group by the fewest groups at every level taken alone."""
    index, touch = problem.index, problem.costs.touch
    mask, last = index.partitions[depth].groups[place], len(index.partitions) - 1
    touched = 0
    leftovers = [0] * (depth + 1)
    for below in range(depth + 1, last + 1):
        if below == last and formulas.applies_to(mask):
            many, leftover = formulas.fewest(mask)
        else:
            many, leftover = _fewest(problem, depth, place, below)
        touched += many * touch[below]
        leftovers.append(leftover)
    return touched, place, leftovers


def fewest_groups(sizes: Iterable[int], costless: int, wanted: int) -> tuple[int, int]:
    """Return how many groups must be touched, and the most CPUs that these leave.

    Args:
        sizes: CPUs to take in each group.
        costless: CPUs to take in groups that cost nothing.
        wanted: Size of the pick.
    """
    many, total = 0, costless
    for size in sorted(sizes, reverse=True):
        if total >= wanted:
            break
        total += size
        many += 1
    return many, total - wanted


def group_limits(
    children: Sequence[ChildGroup], low: int, high: int, leftover: int
) -> Iterator[tuple[int, int, int]]:
    """Limit what each group contributes to best picks of *low* to *high* CPUs.

    A best pick touches as few groups as possible, as that outweighs everything at
    deeper levels. So if *m* groups must be touched, each of them contributes at least
    what the *m* - 1 largest others leave. Groups that cost nothing may contribute
    nothing.

    Args:
        children: The groups.
        low: The size of the smallest pick.
        high: The size of the largest.
        leftover: The most CPUs that a touched group leaves.

    Yields:
        A group, and the fewest and the most CPUs that it contributes if any; in the
        order of *children*, without those that contribute nothing.
    """
    costless, sizes = 0, []
    for _, count, is_free in children:
        if is_free:
            costless += count
        else:
            sizes.append(count)
    sizes.sort(reverse=True)
    tops = list(accumulate(sizes, initial=costless))
    # How many groups the smallest and the largest pick must touch.
    least = bisect_left(tops, low)
    most = bisect_left(tops, high, least)
    for child, count, is_free in children:
        if is_free:
            bound = low - tops[most] + count
        elif most:
            bound = _filling(count, low, sizes, tops, range(least or 1, most + 1))
        else:
            continue
        bound = max(1, bound, count - leftover)
        if bound <= count:
            yield child, bound, min(count, high)


def _fewest(
    problem: PickProblem, depth: int, place: int, below: int
) -> tuple[int, int]:
    take, held = problem.take, problem.held
    masks = problem.index.partitions[below].groups
    groups = [masks[at] for at in problem.index.within[depth][place][below - depth - 1]]
    costless = 0
    if held:
        costless = sum((mask & take).bit_count() for mask in groups if mask & held)
        groups = [mask for mask in groups if not mask & held]
    sizes = [(mask & take).bit_count() for mask in groups]
    return fewest_groups(sizes, costless, problem.count)


def _filling(
    count: int, low: int, sizes: Sequence[int], tops: Sequence[int], touched: range
) -> int:
    """Return the least that a group contributes over all numbers of touched groups."""
    bounds = []
    for many in touched:
        smallest = max(low, tops[many - 1] + 1)
        bounds.append(smallest - tops[many] + max(count, sizes[many - 1]))
    return min(bounds)
