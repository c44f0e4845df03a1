"""Prices of groups of cores by formulas, and limits of a best pick."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from nri_resmgr.policy.cpus.problem import PickProblem
from nri_resmgr.values import CpuSet

# The least price of touching groups inside of a group, the index of that group, and
# per depth the most CPUs that a touched group leaves at this price.
PickBound = tuple[int, int, list[int]]

# A group, the CPUs to take in it, and whether touching it costs nothing.
ChildGroup = tuple[int, int, bool]


class CoreFormulas:
    """Prices and picks of groups of interchangeable CPUs, without a search.

    A group has *twos*, cores of which two CPUs can be taken, *ones*, and *costless*
    CPUs: those of cores that are held already.
    """

    def __init__(self, problem: PickProblem) -> None:
        index, costs, take = problem.index, problem.costs, problem.take
        self._take, self._count = take, problem.count
        self._touch, self._room = costs.touch[-1], costs.room[-1]
        self._cores = index.partitions[-1].groups
        # The formulas hold for cores of at most two threads. Free CPUs that cannot be
        # taken are excluded: with one, a core has more free CPUs than they assume.
        small = index.largest[-1] <= 2  # noqa: PLR2004 - threads
        self._odd = problem.free ^ take if small else -1
        self._beside = 0
        if problem.held:
            for cpu in CpuSet(problem.held):
                self._beside |= index.home[-1].get(cpu, 0)
        self._twos = index.whole_pairs(take & ~self._beside)

    def applies_to(self, mask: int) -> bool:
        """Return whether the formulas hold for a group of cores."""
        return not mask & self._odd

    def fewest(self, mask: int) -> tuple[int, int]:
        """Return how many cores must be touched, and the most CPUs that they leave."""
        costless, _, twos = self._counts(mask)
        if costless >= self._count:
            return 0, costless - self._count
        many = _fewest_cores(self._count - costless, twos)
        return many, costless + many + min(many, twos) - self._count

    def whole(self, mask: int) -> int:
        """Price the cores of a pick of all CPUs to take in a group."""
        _, ones, twos = self._counts(mask)
        return (ones + twos) * self._touch + (ones + 2 * twos) * self._room

    def prices(self, mask: int, low: int, high: int, around: int) -> dict[int, int]:
        """Price the best picks of *low* to *high* CPUs; *around* is added to each."""
        costless, ones, twos = self._counts(mask)
        touch, room = self._touch, self._room
        found = {}
        for size in range(low, high + 1):
            if size <= costless:
                found[size] = around
                continue
            wanted = size - costless
            many = _fewest_cores(wanted, twos)
            cpus = max(wanted, 2 * many - ones) if room > 0 else many + min(many, twos)
            found[size] = around + many * touch + cpus * room
        return found

    def bits(self, mask: int, cores: Iterable[int], size: int) -> int:
        """Return the best pick; of equal ones, later cores contribute less."""
        costless, ones, twos = self._counts(mask)
        both, single = _cores(size - costless, ones, twos, roomy=self._room < 0)
        excess = costless + 2 * both + single - size
        left = [0, single, both]
        chosen = []
        for core in cores:
            bits = self._cores[core] & self._take
            if bits & self._beside:
                chosen.append((bits, 0))
            elif left[bits.bit_count()]:
                left[bits.bit_count()] -= 1
                chosen.append((bits, 1))
        found = 0
        for bits, least in reversed(chosen):
            kept = bits
            while excess and kept.bit_count() > least:
                kept ^= 1 << kept.bit_length() - 1
                excess -= 1
            found |= kept
        return found

    def _counts(self, mask: int) -> tuple[int, int, int]:
        """Return the CPUs of held cores, the ones and the twos of a group."""
        take = mask & self._take
        costless = (take & self._beside).bit_count() if self._beside else 0
        twos = (mask & self._twos).bit_count()
        return costless, take.bit_count() - costless - 2 * twos, twos


def _fewest_cores(wanted: int, twos: int) -> int:
    """Return how many cores a pick touches at least."""
    return (wanted + 1) // 2 if wanted <= 2 * twos else wanted - twos


def _cores(wanted: int, ones: int, twos: int, *, roomy: bool) -> tuple[int, int]:
    """Return how many twos and how many ones a pick touches.

    The fewest cores that have *wanted* CPUs, and of as many cores the ones with
    the fewest CPUs, or the most.
    """
    if wanted <= 0:
        return 0, 0
    many = _fewest_cores(wanted, twos)
    both = min(many, twos) if roomy else max(wanted - many, many - ones)
    return both, many - both


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
    nothing. *leftover* is the most CPUs that a touched group leaves.

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
