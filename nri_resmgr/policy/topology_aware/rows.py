"""How good pools are in one respect, by their ids; more is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias


class Asked(dict[int, int]):
    """Merits that take long to find, each found once, when it is asked for.

    Args:
        find: Returns the merit of the pool of some id.

    >>> Asked(abs)[-3]
    3
    """

    def __init__(self, find: Callable[[int], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, pool: int) -> int:
        found = self[pool] = self._find(pool)
        return found


Row: TypeAlias = Sequence[int] | Asked
"""The merits of all pools."""
