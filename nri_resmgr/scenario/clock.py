"""A clock that is set by hand, with the timers of a policy."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final

from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event

NANOSECONDS: Final = 1_000_000_000  # in a second
_START: Final = 1_700_000_000 * NANOSECONDS


class Clock:
    """A clock that is set by hand, with the timers of one policy.

    Args:
        now: UNIX nanoseconds.
    """

    def __init__(self, now: int = _START) -> None:
        self.now = now
        self._fire: Callable[[Event], None] | None = None
        self._due: dict[Event, int] = {}

    def timers(self, fire: Callable[[Event], None]) -> Clock:
        """Act as the timers of a policy; see `PluginOptions.timers`."""
        self._fire = fire
        return self

    def set(self, timers: Iterable[Timer]) -> None:
        """Add timers; one for the same event is replaced."""
        for timer in timers:
            since = timer.since or self.now
            self._due[timer.event] = since + timer.seconds * NANOSECONDS

    def keep_only(self, containers: Container[str]) -> None:
        """Cancel the timers of removed containers."""
        for event in tuple(self._due):
            if isinstance(event, ColdStartEnded) and event.id not in containers:
                del self._due[event]

    def fire_now(self, event: Event) -> None:
        """Fire the timer of an event before its time, if there is one."""
        if self._due.pop(event, None) is not None and self._fire is not None:
            self._fire(event)

    def tick(self) -> int:
        """Advance by a second; return the time."""
        self.pass_until(self.now + NANOSECONDS)
        return self.now

    @property
    def next_due(self) -> int | None:
        """The time of the next timer; None if there is none."""
        return min(self._due.values(), default=None)

    def pass_until(self, then: int) -> None:
        """Advance to a time; timers fire in order, each at its time."""
        while due := [(at, n) for n, at in enumerate(self._due.values()) if at <= then]:
            at, place = min(due)
            event = list(self._due)[place]
            del self._due[event]
            self.now = max(self.now, at)
            if self._fire is not None:
                self._fire(event)
        self.now = max(self.now, then)
