"""Errors take their annotated fields, like classes of attrs."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from nri_resmgr.values.error_fields import with_fields


@with_fields
class TooLarge(ValueError):
    """Said of a number."""

    size: int
    limit: int = 3

    def __str__(self) -> str:
        return f"{self.size} is over {self.limit}"


@with_fields
class MuchTooLarge(TooLarge):
    """One field more."""

    why: str = ""


class Plain(TooLarge):
    """Adds nothing."""


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TooLarge(4, 3), id="by place"),
        pytest.param(TooLarge(limit=3, size=4), id="by name"),
        pytest.param(TooLarge(4), id="with the default"),
        pytest.param(Plain(4), id="of a class that adds nothing"),
        pytest.param(MuchTooLarge(4, 3, "no room"), id="bases first"),
        pytest.param(pickle.loads(pickle.dumps(TooLarge(4))), id="pickled"),  # noqa: S301 - our own bytes
    ],
)
def test_fields_are_given_as_to_any_class(error: TooLarge) -> None:
    assert (error.size, error.limit, str(error)) == (4, 3, "4 is over 3")
    assert error.args[:2] == (4, 3)


# Any: a type checker refuses these calls, too.
BAD: dict[str, Callable[[], object]] = {
    "misses \\['size'\\]": lambda: TooLarge(limit=1),  # type: ignore[call-arg] # on purpose
    "too many": lambda: TooLarge(1, 2, 3),  # type: ignore[call-arg] # on purpose
    "given twice": lambda: TooLarge(1, size=2),  # type: ignore[misc] # on purpose
    "no fields \\['sise'\\]": lambda: TooLarge(1, sise=2),  # type: ignore[call-arg] # on purpose
}


@pytest.mark.parametrize("words", BAD)
def test_what_does_not_fit_is_told(words: str) -> None:
    with pytest.raises(TypeError, match=words):
        BAD[words]()
