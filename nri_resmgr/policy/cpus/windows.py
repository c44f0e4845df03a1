"""How many CPUs a best pick can take out of each group, at least and at most."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

# A group, the CPUs to take in it, and whether touching it costs nothing.
Kid = tuple[int, int, bool]


def fewest(sizes: Iterable[int], spare: int, wanted: int) -> tuple[int, int]:
    """Return how many of the groups of *sizes* must be touched, and what is left over.

    *spare* CPUs are in groups that cost nothing. Any pick of *wanted* CPUs that
    touches so few groups leaves no more than that of them untaken.
    """
    many, total = 0, spare
    for size in sorted(sizes, reverse=True):
        if total >= wanted:
            break
        total += size
        many += 1
    return many, total - wanted


def windows(
    kids: Sequence[Kid], low: int, high: int, slack: int
) -> Iterator[tuple[int, int, int]]:
    """Bound what each group gives to best picks of *low* to *high* CPUs out of all.

    A best pick touches no more groups than it must, for that weighs more than
    all that is further down. So when *m* groups must be touched, a group that
    is touched has to fill what the *m* - 1 largest others leave. No group of
    those that cost nothing has to give anything.

    Args:
        kids: The groups.
        low: The smallest pick that is asked for.
        high: The largest.
        slack: The most CPUs that a touched group leaves untaken.

    Yields:
        A group, and the fewest and most CPUs that it gives if it gives any;
        in the order of *kids*, without those that give nothing.
    """
    spare, sizes = 0, []
    for _, count, is_free in kids:
        if is_free:
            spare += count
        else:
            sizes.append(count)
    sizes.sort(reverse=True)
    tops = list(accumulate(sizes, initial=spare))
    # How many groups the smallest and the largest pick must touch.
    least = bisect_left(tops, low)
    most = bisect_left(tops, high, least)
    for kid, count, is_free in kids:
        if is_free:
            bound = low - tops[most] + count
        elif most:
            bound = _filling(count, low, sizes, tops, range(least or 1, most + 1))
        else:
            continue
        bound = max(1, bound, count - slack)
        if bound <= count:
            yield kid, bound, min(count, high)


def _filling(
    count: int, low: int, sizes: Sequence[int], tops: Sequence[int], touched: range
) -> int:
    """Return what a group of *count* CPUs gives at least, however many are touched."""
    bounds = []
    for many in touched:
        smallest = max(low, tops[many - 1] + 1)
        bounds.append(smallest - tops[many] + max(count, sizes[many - 1]))
    return min(bounds)
