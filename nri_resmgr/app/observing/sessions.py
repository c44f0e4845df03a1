"""Which session with the runtime this is, and how far it got."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable

from nri_resmgr.app.observing.history import History
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo


class SessionState(enum.StrEnum):
    """How far a session got."""

    DISCONNECTED = "disconnected"
    REGISTERED = "registered"
    SYNCHRONIZED = "synchronized"


class Sessions(Observer):
    """Follows sessions and tells the history of them.

    Args:
        history: Where they are noted.
        now: Tells the time, UNIX nanoseconds.

    Attributes:
        number: Counts sessions from 1; 0 before the first.
        state: Of the present one.
        since: When it got there, UNIX nanoseconds.
        lost_at: When the last one ended; 0 if none did.
        lost_why: The reason.
    """

    def __init__(self, history: History, now: Callable[[], int] = time.time_ns) -> None:
        self._history = history
        self._now = now
        self.number = 0
        self.state = SessionState.DISCONNECTED
        self.since = now()
        self.lost_at = 0
        self.lost_why = ""

    def registered(self, runtime: RuntimeInfo) -> None:
        """A session has begun; a fast runtime has synchronized us by now."""
        self.number += 1
        if self.state is SessionState.DISCONNECTED:
            self._is(SessionState.REGISTERED)
        self._history.note("session.registered", title=str(runtime))

    def synchronized(self) -> None:
        """The runtime has told what runs."""
        self._is(SessionState.SYNCHRONIZED)
        self._history.note("session.synchronized")

    def lost(self, why: str) -> None:
        """The session has ended, or there is none; one note for many attempts."""
        if self.state is SessionState.DISCONNECTED and self.lost_why == why:
            return
        self._is(SessionState.DISCONNECTED)
        self.lost_at, self.lost_why = self.since, why
        self._history.note("session.lost", why=why)

    def _is(self, state: SessionState) -> None:
        self.state, self.since = state, self._now()
