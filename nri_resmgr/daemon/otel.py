"""What exports to a collector of OpenTelemetry share; needs none of its packages."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nri_resmgr.app.background.threads import start_last_thread
from nri_resmgr.version import our_version

# An unreachable collector must not delay the end of the process.
_FLUSH_TIMEOUT: Final = 1.0  # seconds


def facts() -> dict[str, str]:
    """Return attributes of the process; OpenTelemetry's variables override them."""
    found = {"service.name": "nri-resmgr", "service.version": our_version()}
    if node := os.environ.get("NODE_NAME"):
        found["k8s.node.name"] = node
    return found


class Reasons(logging.Handler):
    """Keeps the first of an exporter's log records of a call: later ones repeat it.

    Args:
        module: That of the exporter, whose records go nowhere else from now on.

    Attributes:
        first: Its text; clear it before a call.
    """

    def __init__(self, module: str) -> None:
        super().__init__()
        self.first = ""
        logger = logging.getLogger(module)
        logger.handlers, logger.propagate = [self], False
        # Some drop what they logged in the last seconds: the reason of another call.
        logger.filters.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record's text."""
        self.first = self.first or record.getMessage()


async def flush(send: Callable[[], object]) -> None:
    """Call in a thread; wait a second at most, though the libraries would retry."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        try:
            send()
        finally:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(ended.set)

    start_last_thread(end)
    deadline = loop.time() + _FLUSH_TIMEOUT
    # At the end of the process each task around this one cancels it again.
    while not ended.is_set() and (left := deadline - loop.time()) > 0:
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(ended.wait(), left)
