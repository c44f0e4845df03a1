"""A small cache of results, with frozen values as keys that compare by identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")
MadeT = TypeVar("MadeT")


class IdentityCache(Generic[ValueT, MadeT]):
    """Caches the results of a function for the same objects.

    Values with mappings have no hash, and comparing contents may take as long as the
    function. So keys are compared by identity, one after the other: *most* should be
    small, or few values in use.

    Args:
        make: The function; its argument must never change.
        most: Maximum number of results; when it is exceeded, all are discarded.

    >>> length = IdentityCache(len, most=2)
    >>> length("four"), length("four")
    (4, 4)
    """

    def __init__(self, make: Callable[[ValueT], MadeT], most: int) -> None:
        self._make = make
        self._most = most
        self._known: list[tuple[ValueT, MadeT]] = []

    def __call__(self, value: ValueT) -> MadeT:
        """Return the result for *value*; errors of the function are not caught."""
        for known, made in self._known:
            if known is value:
                return made
        made = self._make(value)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known.append((value, made))
        return made
