"""Values are equal, hashed and printed by content, as if attrs had written it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values.by_content import ByContent


@attrs.frozen(eq=False, repr=False)
class Ours(ByContent):
    """As our values are declared."""

    a: int
    b: str = "x"
    kept_out: int = attrs.field(default=0, eq=False, repr=False)
    unhashed: int = attrs.field(default=0, hash=False)


@attrs.frozen
class Theirs:
    """The same by attrs alone."""

    a: int
    b: str = "x"
    kept_out: int = attrs.field(default=0, eq=False, repr=False)
    unhashed: int = attrs.field(default=0, hash=False)


@attrs.frozen(eq=False, repr=False)
class Empty(ByContent):
    """A value without fields."""


@attrs.frozen(eq=False, repr=False)
class Child(Ours):
    """One field more."""

    c: int = 0


FIELDS = st.fixed_dictionaries(
    {
        "a": st.integers(0, 1),
        "b": st.sampled_from(["x", "y"]),
        "kept_out": st.integers(0, 1),
        "unhashed": st.integers(0, 1),
    }
)


@given(FIELDS, FIELDS)
def test_it_is_what_attrs_generates(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert (Ours(**one) == Ours(**two)) == (Theirs(**one) == Theirs(**two))
    assert (hash(Ours(**one)) == hash(Ours(**two))) == (
        hash(Theirs(**one)) == hash(Theirs(**two))
    )
    assert repr(Ours(**one)) == repr(Theirs(**one)).replace("Theirs", "Ours")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param(Ours(1), Child(1), id="a class and its child"),
        pytest.param(Ours(1), Theirs(1), id="classes with the same fields"),
        pytest.param(Ours(1), (1, "x", 0), id="a value and a tuple"),
        pytest.param(Child(1, c=1), Child(1, c=2), id="a field of the child"),
    ],
)
def test_values_of_different_content_or_class_differ(one: object, two: object) -> None:
    assert one != two


def test_all_values_without_fields_are_equal() -> None:
    assert Empty() == Empty()
    assert {Empty(): 1}[Empty()] == 1
    assert repr(Empty()) == "Empty()"
