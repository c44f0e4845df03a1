"""Masks are whole, disjoint and within their bounds, whatever is asked for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.rdt.capabilities import RdtCache
from nri_resmgr.classes.rdt.errors import MaskRefused
from nri_resmgr.classes.rdt.masks import check_mask, divide, narrow, width_of
from nri_resmgr.classes.rdt.settings import BitMask, Percent, PercentRange

_NAMES = st.text("abcxyz", min_size=1, max_size=3)


def places(mask: int) -> list[int]:
    """List the bits of a mask, by its digits."""
    digits = f"{mask:b}"
    return [len(digits) - 1 - at for at, one in enumerate(digits) if one == "1"][::-1]


@st.composite
def shares(draw: st.DrawFn) -> dict[str, int]:
    names = draw(st.lists(_NAMES, min_size=1, max_size=8, unique=True))
    left = 100
    asked = {}
    for name in names:
        asked[name] = draw(st.integers(0, left))
        left -= asked[name]
    return asked


@given(shares(), st.integers(1, 32), st.integers(1, 4))
def test_partitions_fill_the_lowest_bits_by_name(
    asked: dict[str, int], width: int, min_bits: int
) -> None:
    total = sum(asked.values())
    room = width * total // 100
    if not total or room < min_bits * len(asked):
        with pytest.raises(MaskRefused):
            divide(asked, width, min_bits)
        return

    masks = divide(asked, width, min_bits)
    laid = [place for name in sorted(masks) for place in places(masks[name])]
    counts = {name: len(places(mask)) for name, mask in masks.items()}

    assert masks.keys() == asked.keys()
    assert laid == list(range(room))  # whole, disjoint, adjacent, in order
    assert min(counts.values()) >= min_bits


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.sampled_from((20, 25)))
def test_percents_that_are_whole_bits_are_exact(counts: list[int], width: int) -> None:
    asked = {f"p{at}": count * 100 // width for at, count in enumerate(counts)}
    masks = divide(asked, width, 1)

    assert [len(places(mask)) for mask in masks.values()] == counts


@given(shares(), st.integers(1, 32))
def test_partitions_do_not_depend_on_the_order_of_the_document(
    asked: dict[str, int], width: int
) -> None:
    other = dict(reversed(asked.items()))
    try:
        masks = divide(asked, width, 1)
    except MaskRefused as error:
        with pytest.raises(MaskRefused, match=re.escape(str(error))):
            divide(other, width, 1)
        return

    assert divide(other, width, 1) == masks


@given(st.integers(1, 32), st.integers(0, 30), st.data())
def test_a_class_has_the_bits_that_each_of_its_percents_stands_for(
    count: int, start: int, data: st.DataObject
) -> None:
    base = ((1 << count) - 1) << start
    low = data.draw(st.integers(0, 100))
    high = data.draw(st.integers(max(low, 1), 100))
    # A cache has fewer bits than percents, so that no bit is between two of them.
    wanted = {start + (one - 1) * count // 100 for one in range(max(low, 1), high + 1)}

    assert set(places(narrow(base, PercentRange(low, high), 1))) == wanted
    if low <= 1:
        assert set(places(narrow(base, Percent(high), 1))) == wanted


@given(st.integers(1, 32), st.integers(1, 6), st.integers(1, 100), st.data())
def test_a_narrow_class_is_widened_downwards_then_upwards(
    count: int, min_bits: int, high: int, data: st.DataObject
) -> None:
    base = (1 << count) - 1
    share = PercentRange(data.draw(st.integers(1, high)), high)
    plain = places(narrow(base, share, 1))
    if count < min_bits:
        with pytest.raises(
            MaskRefused, match=f"has {count} bits, less than {min_bits}"
        ):
            narrow(base, share, min_bits)
        return
    wide = places(narrow(base, share, min_bits))

    assert set(plain) <= set(wide) <= set(places(base))
    assert len(wide) == max(len(plain), min_bits)
    assert wide == list(range(wide[0], wide[0] + len(wide)))
    assert wide[-1] == plain[-1] or wide[0] == 0


@given(st.integers(1, (1 << 20) - 1), st.integers(1, 100))
def test_a_percent_of_a_mask_with_holes_is_one_of_its_bits(
    base: int, percent: int
) -> None:
    bits = places(base)
    taken = places(narrow(base, Percent(percent), 1))

    assert taken == bits[: len(taken)]
    assert len(taken) == (percent - 1) * len(bits) // 100 + 1


@given(st.integers(1, (1 << 20) - 1), st.integers(1, (1 << 12) - 1))
def test_bits_are_counted_from_the_lowest_of_the_partition(
    base: int, bits: int
) -> None:
    wanted = {place + places(base)[0] for place in places(bits)}
    if not wanted <= set(places(base)):
        with pytest.raises(MaskRefused):
            narrow(base, BitMask(bits), 1)
        return

    assert set(places(narrow(base, BitMask(bits), 1))) == wanted


_CACHES = st.builds(
    lambda width, min_bits, sparse: RdtCache(
        (1 << width) - 1, min_bits, sparse, 16, (0,)
    ),
    st.integers(1, 12),
    st.integers(0, 4),
    st.booleans(),
)


@given(st.integers(0, (1 << 13) - 1), _CACHES)
def test_a_mask_is_valid_for_the_kernel_or_refused(mask: int, cache: RdtCache) -> None:
    # The lowest run of ones, after the lowest zeros, and what is above it.
    found = re.fullmatch(r"(?P<above>.*?)(?P<run>1+)0*", f"{mask:b}")
    good = (
        found is not None
        and mask <= cache.mask
        and len(found["run"]) >= cache.min_bits
        and (cache.sparse or "1" not in found["above"])
    )
    if not good:
        with pytest.raises(MaskRefused):
            check_mask(mask, cache)
        return

    assert check_mask(mask, cache) == mask


@given(st.integers(0, 64), st.integers(0, 1 << 8))
def test_the_width_of_a_cache_ends_at_the_first_zero(width: int, above: int) -> None:
    assert width_of((1 << width) - 1 | above << (width + 1)) == width
