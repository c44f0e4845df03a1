"""How many CPUs a best pick can take out of each group, at least and at most."""

from __future__ import annotations

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
    spare = sum(count for _, count, is_free in kids if is_free)
    sizes = sorted((count for _, count, is_free in kids if not is_free), reverse=True)
    tops = list(accumulate(sizes, initial=spare))
    most = next((m for m, top in enumerate(tops) if top >= high), len(sizes))
    least = next((m for m, top in enumerate(tops) if top >= low), len(sizes))
    for kid, count, is_free in kids:
        if is_free:
            bound = low - tops[most] + count
        elif most:
            bound = min(
                max(low, tops[m - 1] + 1) - tops[m] + max(count, sizes[m - 1])
                for m in range(max(1, least), most + 1)
            )
        else:
            continue
        bound = max(1, bound, count - slack)
        if bound <= count:
            yield kid, bound, min(count, high)
