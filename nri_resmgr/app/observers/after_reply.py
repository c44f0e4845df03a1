"""Work that is deferred until the runtime has its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, TypeVarTuple

Values = TypeVarTuple("Values")

_DONE: Final = object()


def after_reply(callback: Callable[[*Values], object], *values: *Values) -> None:
    """Call *callback* once the reply is out; at once without an event loop.

    Callbacks keep their order, and come before the event loop looks for the next
    request.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        callback(*values)
    else:
        loop.call_soon(callback, *values)


def after_replies(steps: Iterator[object]) -> None:
    """Run *steps* one by one after replies; requests that arrive go first.

    For work that grows with the number of containers.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        for _ in steps:
            pass
    else:
        after_reply(_next_step, steps)


# No closure: one that refers to itself can only be freed by the garbage collector.
def _next_step(steps: Iterator[object]) -> None:
    if next(steps, _DONE) is not _DONE:
        after_reply(_next_step, steps)
