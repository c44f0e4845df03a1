"""What can wait until the runtime has its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, TypeVarTuple

Values = TypeVarTuple("Values")

_DONE: Final = object()


def after_reply(callback: Callable[[*Values], object], *values: *Values) -> None:
    """Call *callback* once the reply is out; at once where nobody waits for one.

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
    """Take one step after the other, and let requests that come meanwhile go first.

    For work that grows with the number of containers.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        for _ in steps:
            pass
    else:
        after_reply(_go_on, steps)


# No closure: one that names itself is left to the garbage collector.
def _go_on(steps: Iterator[object]) -> None:
    if next(steps, _DONE) is not _DONE:
        after_reply(_go_on, steps)
