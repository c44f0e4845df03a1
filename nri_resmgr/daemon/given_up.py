"""Has who asks told that a service has ended by a fault of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def telling_of_a_fault(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell why a service is given up, and pass the fault on to who logs it.

    Who asks how it is shall not be told the fate of the last round.
    """
    try:
        yield
    except Exception as error:
        tell(f"it was given up after a fault, {type(error).__name__}: {error}")
        raise
