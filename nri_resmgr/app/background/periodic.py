"""When to do what is done again and again: together, and beside the event loop.

To wake up costs an idle process more than what it then does: 0.1 to 0.2 ms of a CPU
whose caches somebody else has used meanwhile.
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

    Those who sleep for so long wake together: the event loop, and the kernel, turn
    once for all of them.
    """
    now = time.monotonic()
    return (math.floor((now + _EARLY) / interval) + 1) * interval - now


async def found_by(poll: Callable[[], T | None], interval: float) -> T:
    """Poll at each tick until there is something, and return that.

    A thread of its own polls, because files may be on a disk that hangs. The event
    loop sleeps until something is found: handing every poll to a pool of threads
    wakes it twice, and costs five times as much.

    Args:
        poll: Is called in the thread.
        interval: Seconds between ticks.

    Raises:
        Exception: What *poll* raised.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    is_over = threading.Event()

    def watch() -> None:
        found = error = None
        while found is error is None and not is_over.wait(until_tick(interval)):
            try:
                found = poll()
            except Exception as raised:  # noqa: BLE001 - raised again where it is awaited
                error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, answer, found, error)

    # Nobody waits for it at the end, however long a disk takes.
    threading.Thread(target=watch, name="poll", daemon=True).start()
    try:
        return await answer
    finally:
        is_over.set()


def _settle(
    answer: asyncio.Future[Any], found: object, error: Exception | None
) -> None:
    if answer.done():  # nobody waits any more
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
