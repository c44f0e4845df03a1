"""Time in which nobody waits."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final

from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event

NANOSECONDS: Final = 1_000_000_000  # in a second
_START: Final = 1_700_000_000 * NANOSECONDS


class Clock:
    """A clock that is set by hand, with the alarms of one policy.

    Args:
        now: UNIX nanoseconds.
    """

    def __init__(self, now: int = _START) -> None:
        self.now = now
        self._fire: Callable[[Event], None] | None = None
        self._due: dict[Event, int] = {}

    def timers(self, ring: Callable[[Event], None]) -> Clock:
        """Be the timers of a policy; see `nri_resmgr.app.plugin.options`."""
        self._fire = ring
        return self

    def set(self, timers: Iterable[Timer]) -> None:
        """Add alarms; one for the same event is replaced."""
        for timer in timers:
            since = timer.since or self.now
            self._due[timer.event] = since + timer.seconds * NANOSECONDS

    def keep_only(self, containers: Container[str]) -> None:
        """Cancel the alarms of containers that are gone."""
        for event in tuple(self._due):
            if isinstance(event, ColdStartEnded) and event.id not in containers:
                del self._due[event]

    def ring_now(self, event: Event) -> None:
        """Have an alarm go off before its time, if there is one."""
        if self._due.pop(event, None) is not None and self._fire is not None:
            self._fire(event)

    def tick(self) -> int:
        """Let a second pass, and return what time it is."""
        self.pass_until(self.now + NANOSECONDS)
        return self.now

    def pass_until(self, then: int) -> None:
        """Let time pass; alarms go off in order, each at its time."""
        while due := [(at, n) for n, at in enumerate(self._due.values()) if at <= then]:
            at, place = min(due)
            event = list(self._due)[place]
            del self._due[event]
            self.now = max(self.now, at)
            if self._fire is not None:
                self._fire(event)
        self.now = max(self.now, then)
