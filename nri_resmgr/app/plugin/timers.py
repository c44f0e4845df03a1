"""Timers: events that a policy gets back after some time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable
from typing import Final

from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event

log = Logger(__name__)

_NANOSECONDS: Final = 1_000_000_000

# Such as without memory; not so often that a mistake of ours would fill the log.
_AGAIN: Final = 10.0  # seconds


class Timers:
    """Fires once per event, as long as its container exists.

    Args:
        fire: Called with each event that is due.
        again: Seconds until it is called again after an exception.
    """

    def __init__(self, fire: Callable[[Event], None], again: float = _AGAIN) -> None:
        self._fire = fire
        self._again = again
        self._handles: dict[Event, asyncio.TimerHandle] = {}

    def set(self, timers: Iterable[Timer]) -> None:
        """Add timers; one for the same event is replaced. Needs a running loop."""
        loop = asyncio.get_running_loop()
        for timer in timers:
            self._cancel(timer.event)
            delay = _seconds_left(timer)
            handle = loop.call_later(delay, self._expire, timer.event)
            self._handles[timer.event] = handle

    def keep_only(self, containers: Container[str]) -> None:
        """Cancel the timers of containers that are gone."""
        # Other events are about no container.
        for event in tuple(self._handles):
            if isinstance(event, ColdStartEnded) and event.id not in containers:
                self._cancel(event)

    def _expire(self, event: Event) -> None:
        del self._handles[event]
        try:
            self._fire(event)
        except Exception as error:
            # Nothing else decides the event.
            loop = asyncio.get_running_loop()
            self._handles[event] = loop.call_later(self._again, self._expire, event)
            log.error("timer.failed", again_in=self._again, exc_info=error)

    def _cancel(self, event: Event) -> None:
        if (handle := self._handles.pop(event, None)) is not None:
            handle.cancel()


def _seconds_left(timer: Timer) -> float:
    if not timer.since:
        return timer.seconds
    # The runtime stamps events by the same clock, which may be set back.
    passed = max(0, time.time_ns() - timer.since) / _NANOSECONDS
    return max(0.0, timer.seconds - passed)
