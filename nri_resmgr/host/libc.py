"""Functions of the C library that Python has no counterpart for."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache


def call(function: str, *args: int | bytes) -> int:
    """Call a function that returns -1 for an error; return its result.

    Raises:
        OSError: It returned an error.
        AttributeError: The library does not have it.
    """
    result, number = _caller()(function, args)
    if result < 0:
        raise OSError(number, os.strerror(number))
    return result


@lru_cache(maxsize=1)
def _caller() -> Callable[[str, tuple[int | bytes, ...]], tuple[int, int]]:
    """Return a function that calls one of the library: its result, and errno."""
    # Late: it takes 10 ms, and what needs it comes after the start, or not at all.
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)

    def called(function: str, args: tuple[int | bytes, ...]) -> tuple[int, int]:
        given = [one if isinstance(one, bytes) else ctypes.c_long(one) for one in args]
        return getattr(library, function)(*given), ctypes.get_errno()

    return called
