"""The order of picks: the criteria that are compared, as one price."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from nri_resmgr.policy.cpus.index import CpuIndex
from nri_resmgr.policy.cpus.levels import TopologyLevel
from nri_resmgr.policy.cpus.priorities import CpuPriority
from nri_resmgr.policy.cpus.request import CoreUse, CpuPreferences


class PickCosts(msgspec.Struct, frozen=True):
    """Prices, each one integer with a digit per criterion.

    A pick costs the sum of the prices of all groups that it touches and of all its
    CPUs; the cheaper of two picks is the better one. Digits are wide enough for any
    sum, so that comparing sums compares criterion by criterion, in this order:

    1. groups touched, level by level, of packages, dies and NUMA nodes;
    2. CPUs of a class other than the preferred one, then those of the class
       farthest from it;
    3. second threads of a core (`CoreUse.ONE_THREAD`) or idle cores broken
       (`CoreUse.FRAGMENTS`);
    4. groups touched of the levels inside of a node, cores last;
    5. free CPUs in the touched groups, level by level, least first
       (`spread`: most first).

    Attributes:
        touch: Price of touching a group, per depth.
        room: Price of a free CPU in a touched group, per depth.
        cpus: Masks of CPUs and the price of taking one of them, cheapest first.
        sibling: Price of a second thread.
        broken: Price of touching an idle core.
    """

    touch: tuple[int, ...]
    room: tuple[int, ...]
    cpus: tuple[tuple[int, int], ...]
    sibling: int = 0
    broken: int = 0

    @property
    def counts_groups(self) -> bool:
        """True if touching a group has a price at every level."""
        return all(self.touch)

    @property
    def is_plain(self) -> bool:
        """True if the threads of a core are interchangeable."""
        return not self.sibling and not self.broken and self.counts_groups


# One entry per set of preferences in use, of which policies have a handful.
@lru_cache(maxsize=64)
def costs_of(preferences: CpuPreferences, index: CpuIndex) -> PickCosts:
    """Turn preferences into prices on one machine."""
    # Every pick touches the machine, so counting it changes no comparison.
    counts = preferences.levels | {TopologyLevel.MACHINE}
    counted = [bool(cut.levels & counts) for cut in index.partitions]
    digits = _Digits(2 * len(counted) + 3, index.root.bits.bit_count())
    outer = [digits.take(counted=on) for on in counted[: index.inside]]
    other, farthest = digits.take(), digits.take()
    threads = digits.take()
    inner = [digits.take(counted=on) for on in counted[index.inside :]]
    sign = -1 if preferences.spread else 1
    return PickCosts(
        touch=(*outer, *inner),
        room=tuple(sign * digits.take(counted=on) for on in counted),
        cpus=_cpu_prices(preferences, index, other, farthest),
        sibling=threads if preferences.cores is CoreUse.ONE_THREAD else 0,
        broken=threads if preferences.cores is CoreUse.FRAGMENTS else 0,
    )


class _Digits:
    """Weights of digits, the most significant first."""

    def __init__(self, count: int, largest: int) -> None:
        # One bit for the sign and one so that no sum reaches half of the next.
        self._width = largest.bit_length() + 2
        self._left = count

    def take(self, *, counted: bool = True) -> int:
        """Return the weight of the next digit; 0 if it is not counted."""
        self._left -= 1
        return counted << self._width * self._left


def _cpu_prices(
    preferences: CpuPreferences, index: CpuIndex, other: int, farthest: int
) -> tuple[tuple[int, int], ...]:
    every = index.root.bits
    if preferences.priority is CpuPriority.ANY:
        return ((every, 0),)
    sets = preferences.classes or index.priorities
    high, low = sets.high.bits & every, sets.low.bits & every
    normal = every & ~high & ~low
    ranked = {
        CpuPriority.HIGH: (high, normal, low),
        CpuPriority.NORMAL: (normal, low, high),
        CpuPriority.LOW: (low, normal, high),
    }[preferences.priority]
    return tuple(zip(ranked, (0, other, other + farthest), strict=True))
