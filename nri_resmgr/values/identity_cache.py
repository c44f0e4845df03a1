"""What was made of frozen values, found again by the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")
MadeT = TypeVar("MadeT")


class IdentityCache(Generic[ValueT, MadeT]):
    """Makes something of a value once, for as long as the same object comes again.

    It compares by identity, one after the other: values with mappings have no hash,
    and comparing contents may take as long as what is saved. So *most* is to be
    small, or few values to be in use.

    Args:
        make: Takes a value that never changes.
        most: How many are kept; with one more it begins anew.

    >>> length = IdentityCache(len, most=2)
    >>> length("four"), length("four")
    (4, 4)
    """

    def __init__(self, make: Callable[[ValueT], MadeT], most: int) -> None:
        self._make = make
        self._most = most
        self._known: list[tuple[ValueT, MadeT]] = []

    def __call__(self, value: ValueT) -> MadeT:
        """Return what was made of *value*; whatever making it raises comes out."""
        for known, made in self._known:
            if known is value:
                return made
        made = self._make(value)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known.append((value, made))
        return made
