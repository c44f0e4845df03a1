"""Formulas for the best picks out of groups of cores with one or two threads."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.policy.cpus.problem import PickProblem
from nri_resmgr.values import CpuSet


class CoreFormulas:
    """Prices and picks of groups of cores, without a search.

    A group has *twos*, cores of which two CPUs can be taken, *ones*, and *costless*
    CPUs: those of cores that are held already.

    Args:
        problem: A problem with interchangeable CPUs.
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
        many = _fewest(self._count - costless, twos)
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
            many = _fewest(wanted, twos)
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


def _fewest(wanted: int, twos: int) -> int:
    """Return how many cores a pick touches at least."""
    return (wanted + 1) // 2 if wanted <= 2 * twos else wanted - twos


def _cores(wanted: int, ones: int, twos: int, *, roomy: bool) -> tuple[int, int]:
    """Return how many twos and how many ones a pick touches.

    The fewest cores that have *wanted* CPUs, and of as many cores the ones with
    the fewest CPUs, or the most.
    """
    if wanted <= 0:
        return 0, 0
    many = _fewest(wanted, twos)
    both = min(many, twos) if roomy else max(wanted - many, many - ones)
    return both, many - both
