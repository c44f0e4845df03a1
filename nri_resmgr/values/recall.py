"""What was made of frozen values, found again by the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")
MadeT = TypeVar("MadeT")


class Recall(Generic[ValueT, MadeT]):
    """Makes something of a value once, for as long as the same object comes again.

    By identity: to compare two values, or to hash one, may take as long as what is
    saved. It keeps the values, so that no other can have their places.

    Args:
        make: Takes a value that never changes.
        most: How many are kept; with one more it begins anew.

    >>> length = Recall(len, most=2)
    >>> length("four"), length("four")
    (4, 4)
    """

    def __init__(self, make: Callable[[ValueT], MadeT], most: int) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[ValueT, MadeT]] = {}

    def __call__(self, value: ValueT) -> MadeT:
        """Return what was made of *value*; whatever making it raises comes out."""
        if (found := self._known.get(id(value))) is None:
            found = value, self._make(value)
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[id(value)] = found
        return found[1]
