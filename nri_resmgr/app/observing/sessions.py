"""The present session with the runtime, and its progress."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable

from nri_resmgr.app.observing.history import History
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo


class SessionState(enum.StrEnum):
    """The progress of a session."""

    DISCONNECTED = "disconnected"
    REGISTERED = "registered"
    SYNCHRONIZED = "synchronized"


class SessionTracker(Observer):
    """Tracks sessions, and notes their events in the history.

    Args:
        now: Returns the time, UNIX nanoseconds.

    Attributes:
        number: Counts sessions from 1; 0 before the first.
        since: The time of the last change of state, UNIX nanoseconds.
        ended_at: The end of the last session, or of the last attempt to begin one, UNIX
            nanoseconds; 0 before there was any.
        ended_why: The reason for it.
    """

    def __init__(self, history: History, now: Callable[[], int] = time.time_ns) -> None:
        self._history = history
        self._now = now
        self.number = 0
        self.state = SessionState.DISCONNECTED
        self.since = now()
        self.ended_at = 0
        self.ended_why = ""

    @property
    def is_synchronized(self) -> bool:
        """True if it is known what runs."""
        return self.state is SessionState.SYNCHRONIZED

    def registered(self, runtime: RuntimeInfo) -> None:
        """A session has begun; a fast runtime has synchronized already."""
        self.number += 1
        if self.state is SessionState.DISCONNECTED:
            self._enter(SessionState.REGISTERED)
        self._history.note("session.registered", title=str(runtime))

    def synchronized(self) -> None:
        """The runtime has listed its pods and containers."""
        self._enter(SessionState.SYNCHRONIZED)
        self._history.note("session.synchronized")

    def ended(self, why: str) -> None:
        """The session has ended, or could not begin; one note for equal attempts."""
        was_open = self.state is not SessionState.DISCONNECTED
        if not was_open and self.ended_why == why:
            return
        self._enter(SessionState.DISCONNECTED)
        self.ended_at, self.ended_why = self.since, why
        if was_open:
            self._history.note("session.ended", why=why)
        else:
            self._history.note("session.failed", why=why)

    def _enter(self, state: SessionState) -> None:
        self.state, self.since = state, self._now()
