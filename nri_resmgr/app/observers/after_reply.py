"""Work that is deferred until the runtime has its answer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import Final, TypeAlias, TypeVarTuple

Values = TypeVarTuple("Values")

Steps: TypeAlias = Iterator[object]
"""Work that can be interrupted wherever it yields."""

# A line of the log or a file takes 0.1 ms, what is noted of a usual decision 0.3 ms:
# pieces of a few milliseconds. A count, not a time: a busy machine would otherwise cut
# what belongs to one decision anywhere.
AT_ONCE: Final = 16
"""Steps between two looks for requests."""

_DONE: Final = object()


def after_reply(callback: Callable[[*Values], object], *values: *Values) -> None:
    """Call *callback* once the reply is out; at once without an event loop.

    Callbacks keep their order, and come before the event loop looks for the next
    request. Work that grows with the number of containers is for `DeferredWork`.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        callback(*values)
    else:
        loop.call_soon(callback, *values)


class DeferredWork:
    """Does work after replies, in the order in which it was added, in pieces.

    The first piece comes before the event loop looks for the next request. Requests
    that arrive during a piece are answered before the next one. Without an event loop
    all work is done at once.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Context, Steps]] = deque()
        self._is_scheduled = False

    def add(self, steps: Steps) -> None:
        """Do *steps* after all earlier ones, in the present context."""
        self._waiting.append((copy_context(), steps))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.finish()
            return
        if not self._is_scheduled:
            loop.call_soon(self._piece)
            self._is_scheduled = True

    def finish(self) -> None:
        """Do all of the work now."""
        while self._waiting:
            self._step()

    def _piece(self) -> None:
        try:
            for _ in range(AT_ONCE):
                if not self._waiting:
                    break
                self._step()
        finally:
            # Without memory for a call the next `add` schedules it.
            self._is_scheduled = False
            if self._waiting:
                loop = asyncio.get_running_loop()
                # The loop reads its sockets between the two calls, and what it has read
                # comes before the second one.
                loop.call_soon(loop.call_soon, self._piece)
                self._is_scheduled = True

    def _step(self) -> None:
        context, steps = found = self._waiting.popleft()
        # Work that fails is not in the queue any more.
        if context.run(next, steps, _DONE) is not _DONE:
            self._waiting.appendleft(found)
