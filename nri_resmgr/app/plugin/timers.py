"""Events that a policy wants handed back after some time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable
from typing import Final

from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event

_NANOSECONDS: Final = 1_000_000_000


class Timers:
    """Rings once per event, as long as its container is there.

    Args:
        ring: Called with each event when its time has come.
    """

    def __init__(self, ring: Callable[[Event], None]) -> None:
        self._fire = ring
        self._handles: dict[Event, asyncio.TimerHandle] = {}

    def set(self, timers: Iterable[Timer]) -> None:
        """Add alarms; one for the same event is replaced. Needs a running loop."""
        loop = asyncio.get_running_loop()
        for timer in timers:
            self._cancel(timer.event)
            delay = _seconds_left(timer)
            handle = loop.call_later(delay, self._go_off, timer.event)
            self._handles[timer.event] = handle

    def keep_only(self, containers: Container[str]) -> None:
        """Cancel the alarms of containers that are gone."""
        for event in tuple(self._handles):
            if isinstance(event, ColdStartEnded) and event.id not in containers:
                self._cancel(event)

    def _go_off(self, event: Event) -> None:
        del self._handles[event]
        self._fire(event)

    def _cancel(self, event: Event) -> None:
        if (handle := self._handles.pop(event, None)) is not None:
            handle.cancel()


def _seconds_left(timer: Timer) -> float:
    if not timer.since:
        return timer.seconds
    # Clocks of the runtime and ours are the same machine's, but may be set back.
    passed = max(0, time.time_ns() - timer.since) / _NANOSECONDS
    return max(0.0, timer.seconds - passed)
