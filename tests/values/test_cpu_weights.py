"""Weights of cgroup v2 are those that runtimes compute from shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.requests import MAX_SHARES, MIN_SHARES
from nri_resmgr.values.cpu_weights import clamped_shares, weight_for, weights_for


@pytest.mark.parametrize(
    ("shares", "weights"),
    [
        pytest.param(2, {1}, id="the least"),
        pytest.param(102, {4, 17}, id="a tenth of a CPU"),
        pytest.param(1024, {39, 100}, id="one CPU"),
        pytest.param(MAX_SHARES, {10_000}, id="the most"),
    ],
)
def test_either_weight_that_runtimes_make_of_shares_is_right(
    shares: int, weights: set[int]
) -> None:
    assert weights <= weights_for(shares)
    assert 1000 not in weights_for(shares)


@pytest.mark.parametrize(
    ("shares", "weight"),
    [
        pytest.param(2, 1, id="the least"),
        pytest.param(3, 2, id="rounded up"),
        pytest.param(102, 17, id="a tenth of a CPU"),
        pytest.param(1024, 100, id="one CPU is the default weight"),
        pytest.param(MAX_SHARES, 10_000, id="the most"),
    ],
)
def test_the_weight_is_that_of_present_runtimes(shares: int, weight: int) -> None:
    assert weight_for(shares) == weight


@given(st.integers(0, 2 * MAX_SHARES), st.integers(0, 2 * MAX_SHARES))
def test_more_shares_are_never_less_weight(one: int, other: int) -> None:
    low, high = sorted((one, other))

    assert weight_for(low) <= weight_for(high)
    assert weight_for(one) in weights_for(one)
    assert weight_for(one) == weight_for(clamped_shares(one))
    assert MIN_SHARES <= clamped_shares(one) <= MAX_SHARES
