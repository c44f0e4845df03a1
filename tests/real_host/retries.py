"""More tries of what a network can fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

_Result = TypeVar("_Result")

# Seconds before another try: a mirror that is being updated needs some.
PAUSES: Final = (5.0, 20.0)


def with_retries(
    fetch: Callable[[], _Result],
    failure: type[Exception],
    pauses: tuple[float, ...] = PAUSES,
) -> _Result:
    """Call *fetch* until it does not raise *failure*, once more than there are pauses.

    Raises:
        Exception: *failure* of the last try.
    """
    for pause in pauses:
        try:
            return fetch()
        except failure:
            time.sleep(pause)
    return fetch()
