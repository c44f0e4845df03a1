"""A cached value was made of the same object, and never of another."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values.identity_cache import IdentityCache


def texts_of(letters: Iterable[str]) -> list[tuple[str, ...]]:
    """Make equal values that are different objects."""
    return [(letter,) for letter in letters]


@given(st.lists(st.integers(0, 5)))
def test_the_cache_returns_the_values_of_its_function(asked: list[int]) -> None:
    made: IdentityCache[tuple[int, ...], list[int]] = IdentityCache(list, most=2)
    values = {place: (place,) for place in asked}

    assert [made(values[place]) for place in asked] == [[place] for place in asked]


def test_the_same_object_is_asked_about_once_an_equal_one_again() -> None:
    asked: list[tuple[str, ...]] = []
    recall = IdentityCache(asked.append, most=8)
    one, twin = texts_of("aa")
    for value in (one, one, twin, one):
        recall(value)

    assert asked == [one, twin]
    assert asked[1] is twin


def test_a_full_cache_is_cleared() -> None:
    asked: list[tuple[str, ...]] = []
    recall = IdentityCache(asked.append, most=2)
    a, b, c = texts_of("abc")
    for value in (a, b, a, c, c, a):
        recall(value)

    assert asked == [a, b, c, a]


def test_an_error_is_not_recalled() -> None:
    recall = IdentityCache(int, most=2)
    for _ in range(2):
        with pytest.raises(ValueError, match="none"):
            recall("none")
