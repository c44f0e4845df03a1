"""Prices of picks out of two sets of groups together."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from nri_resmgr.policy.cpus.uniform import merge_prices


def price_lists(most: int, smallest: int) -> st.SearchStrategy[dict[int, int]]:
    """Draw prices, cheap ones so that many are equal, of some sizes."""
    return st.dictionaries(
        st.integers(smallest, most),
        st.integers(0, 9),
        min_size=most // 2,
        max_size=most,
    )


@given(
    st.sampled_from((4, 40)).flatmap(
        lambda most: st.tuples(price_lists(most, 0), price_lists(most, 1))
    ),
    st.integers(0, 40),
    st.integers(0, 90),
)
def test_the_cheapest_two_parts_and_of_these_the_smaller_gift(
    lists: tuple[dict[int, int], dict[int, int]], low: int, more: int
) -> None:
    before, prices = lists
    event(f"pairs of sizes: {len(before) * len(prices) // 128 * 128} or more")
    offers = [
        (size + gift, paid + price, gift)
        for size, paid in before.items()
        for gift, price in (prices | {0: 0}).items()
        if low <= size + gift <= low + more or (not gift and size >= low)
    ]
    best = {size: (price, gift) for size, price, gift in sorted(offers, reverse=True)}

    total, gifts = merge_prices(before, prices, low, low + more)

    assert {size: (total[size], gifts[size]) for size in total} == best
