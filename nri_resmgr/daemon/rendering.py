"""One run of something costly for all clients that come meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Rendering:
    """Renders a text when one is wanted, and one at a time.

    The cost of many clients at the same time is that of one.

    Args:
        render: Makes the text.
    """

    def __init__(self, render: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        self._render = render
        self._running: asyncio.Task[bytes] | None = None

    async def text(self) -> bytes:
        """Return the text of the present run, or of a new one."""
        if self._running is None:
            self._running = asyncio.create_task(self._render())
            self._running.add_done_callback(self._forget)
        # A client that leaves does not end the run of the others.
        return await asyncio.shield(self._running)

    def _forget(self, done: asyncio.Task[bytes]) -> None:
        self._running = None  # the text is up to a megabyte
        if not done.cancelled():
            done.exception()  # else asyncio logs it where all clients have left
