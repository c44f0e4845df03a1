"""The order of picks: what is compared first, and what only after that."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from nri_resmgr.policy.cpus.index import CpuIndex
from nri_resmgr.policy.cpus.levels import Level
from nri_resmgr.policy.cpus.priorities import CpuPriority
from nri_resmgr.policy.cpus.request import CoreUse, Preferences


class Costs(msgspec.Struct, frozen=True):
    """What a pick pays, as one integer with a digit per criterion.

    A pick pays for every group that it touches and for every CPU. Of two picks
    the one that pays less is better. Digits are wide enough for any sum, so
    that comparing sums compares criterion by criterion, the first one first:

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
        """Whether touching costs something at every level."""
        return all(self.touch)

    @property
    def is_plain(self) -> bool:
        """Whether threads of a core are all the same to the pick."""
        return not self.sibling and not self.broken and self.counts_groups


# One entry per wish in use: policies have a handful.
@lru_cache(maxsize=64)
def costs_of(wish: Preferences, index: CpuIndex) -> Costs:
    """Turn preferences into prices on one machine."""
    # Every pick touches the machine; that it counts makes no difference.
    counts = wish.levels | {Level.MACHINE}
    counted = [bool(cut.levels & counts) for cut in index.partitions]
    digits = _Digits(2 * len(counted) + 3, index.root.bits.bit_count())
    outer = [digits.take(counted=on) for on in counted[: index.inside]]
    other, farthest = digits.take(), digits.take()
    threads = digits.take()
    inner = [digits.take(counted=on) for on in counted[index.inside :]]
    sign = -1 if wish.spread else 1
    return Costs(
        touch=(*outer, *inner),
        room=tuple(sign * digits.take(counted=on) for on in counted),
        cpus=_cpu_prices(wish, index, other, farthest),
        sibling=threads if wish.cores is CoreUse.ONE_THREAD else 0,
        broken=threads if wish.cores is CoreUse.FRAGMENTS else 0,
    )


class _Digits:
    """Weights of digits, the most significant first."""

    def __init__(self, count: int, largest: int) -> None:
        # One bit for the sign and one so that no sum reaches half of the next.
        self._width = largest.bit_length() + 2
        self._left = count

    def take(self, *, counted: bool = True) -> int:
        """Return the weight of the next digit; nothing where it does not count."""
        self._left -= 1
        return counted << self._width * self._left


def _cpu_prices(
    wish: Preferences, index: CpuIndex, other: int, farthest: int
) -> tuple[tuple[int, int], ...]:
    every = index.root.bits
    if wish.priority is CpuPriority.ANY:
        return ((every, 0),)
    sets = wish.classes or index.priorities
    high, low = sets.high.bits & every, sets.low.bits & every
    normal = every & ~high & ~low
    ranked = {
        CpuPriority.HIGH: (high, normal, low),
        CpuPriority.NORMAL: (normal, low, high),
        CpuPriority.LOW: (low, normal, high),
    }[wish.priority]
    return tuple(zip(ranked, (0, other, other + farthest), strict=True))
