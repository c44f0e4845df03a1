"""Prices of picks out of two sets of groups together."""

from __future__ import annotations

from operator import add
from typing import Final

# Prices by size of the pick.
Prices = dict[int, int]

# Pairs of sizes from which on the lists of `_many` are made faster than they cost.
_MANY: Final = 256


def joined(
    before: Prices, prices: Prices, low: int, high: int
) -> tuple[Prices, dict[int, int]]:
    """Let one more group give to picks, or give nothing.

    Args:
        before: Prices of picks out of the groups before.
        prices: Prices of picks out of this one, at least of one CPU.
        low: The smallest size that is needed.
        high: The largest.

    Returns:
        The least price by size, and how much of it this group gives; of equal
        prices the one where it gives less.
    """
    total = {size: price for size, price in before.items() if size >= low}
    given = dict.fromkeys(total, 0)
    if len(before) * len(prices) >= _MANY:
        found = _many(before, prices, low, high)
        for both, (price, gift) in found.items():
            if both not in total or price < total[both]:
                total[both] = price
                given[both] = gift
        return total, given
    for gift in sorted(prices):
        more = prices[gift]
        for size, paid in before.items():
            both = size + gift
            if low <= both <= high and (both not in total or paid + more < total[both]):
                total[both] = paid + more
                given[both] = gift
    return total, given


def _many(
    before: Prices, prices: Prices, low: int, high: int
) -> dict[int, tuple[int, int]]:
    never = max(before.values()) + max(prices.values()) + 1
    first, last = min(before), max(before)
    least, most = min(prices), max(prices)
    falling = [before.get(size, never) for size in range(last, first - 1, -1)]
    rising = [prices.get(gift, never) for gift in range(least, most + 1)]
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
