"""Reads of the host in a thread, for requests to come."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from nri_resmgr.app.background.threads import NO_MEMORY, BackgroundThread
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.log import Logger

log = Logger(__name__)

# A burst of pods needs one.
INTERVAL: Final = 10.0
"""Seconds from the begin of a read to the next one, by default."""


class Renewal:
    """Reads something again once the reply is out, in a thread, one read at a time.

    A read that cannot be made is left out: what was read before counts, or the request
    reads by itself.

    Args:
        read: Reads, and keeps what it has read.
        interval: Seconds from the begin of a read to the next one.
    """

    def __init__(self, read: Callable[[], object], interval: float = INTERVAL) -> None:
        self._read = read
        self._interval = interval
        self._next = monotonic() + interval
        self._is_running = False

    def begin(self) -> None:
        """Read again after the reply, unless that was done a moment ago."""
        if not self._is_running and monotonic() >= self._next:
            self._is_running = True
            after_reply(self._start)

    def _start(self) -> None:
        self._next = monotonic() + self._interval
        try:
            BackgroundThread(self._run)
        except (RuntimeError, *NO_MEMORY) as error:
            self._is_running = False
            log.debug("read-ahead.failed", why=str(error))

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:
            log.error("read-ahead.failed", exc_info=error)
        finally:
            self._is_running = False
