"""Waits for what sets no event: a file, another process, the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_STEP = 0.01  # seconds between two looks


async def until(holds: Callable[[], object], within: float = 30.0) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: It did not happen within so many seconds.
    """
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - see the module
            await asyncio.sleep(_STEP)
