"""Periodic work: on common ticks, and in threads beside the event loop.

A wake-up of an idle process costs more than the work itself: 0.1 to 0.2 ms, because
other processes have used the CPU's caches meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

# A timer that fires this much early has fired for its tick.
_EARLY: Final = 1e-4  # seconds


def until_tick(interval: float) -> float:
    """Return the seconds until the monotonic clock shows a multiple of *interval*.

    Tasks that sleep for this long wake together: one wake-up of the process serves
    all of them.
    """
    now = time.monotonic()
    return (math.floor((now + _EARLY) / interval) + 1) * interval - now


async def found_by(poll: Callable[[], T | None], interval: float) -> T:
    """Poll at each tick until the result is not None, and return it.

    A thread of its own polls, because files may be on a disk that hangs. The event
    loop sleeps until then: a pool of threads would wake it twice for every poll, and
    cost five times as much.

    Args:
        poll: Called in the thread.
        interval: Seconds between ticks.

    Raises:
        Exception: Raised by *poll*.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    is_over = threading.Event()

    def poll_until_found() -> None:
        found = error = None
        while found is error is None and not is_over.wait(until_tick(interval)):
            try:
                found = poll()
            except Exception as raised:  # noqa: BLE001 - raised again where it is awaited
                error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, answer, found, error)

    # A daemon thread: the process ends without it, however long a disk takes.
    threading.Thread(target=poll_until_found, name="poll", daemon=True).start()
    try:
        return await answer
    finally:
        is_over.set()


def _settle(
    answer: asyncio.Future[Any], found: object, error: Exception | None
) -> None:
    if answer.done():  # cancelled
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
