"""The daemon's observers of sessions and decisions."""

from __future__ import annotations

import time

from nri_resmgr.app.configuration.status import Rejection
from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.observers.dispatch import notify_each
from nri_resmgr.app.observers.garbage import keep_present, thaw
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.request_log import RequestLog
from nri_resmgr.app.observing.sessions import SessionState, SessionTracker
from nri_resmgr.app.observing.tracing import Tracing
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo


class DaemonObservers(Observer):
    """Passes the stub's reports to all observers of sessions.

    The failure of one is logged: it ends no session, and the others see the report.

    Attributes:
        started: The start of the process, UNIX nanoseconds.
        history: Recent events.
        sessions: The present session.
        metrics: Counters, which are on where something can read them.
        tracing: Spans, which are on where they are sent.
        of_decisions: Those that observe decisions, for the policy.

    Args:
        counts: Whether counters are on at first.
        traces: Whether spans are on at first.
    """

    def __init__(self, *, counts: bool, traces: bool) -> None:
        self.started = time.time_ns()
        self.history = History()
        self.sessions = SessionTracker(self.history)
        self.metrics = Metrics(is_on=counts)
        self.tracing = Tracing(is_on=traces)
        self._of_sessions: tuple[Observer, ...] = (
            self.sessions,
            self.metrics,
            RequestLog(),
        )
        self.of_decisions: tuple[DecisionObserver, ...] = (
            self.history,
            self.metrics,
            self.tracing,
        )

    def add(self, observer: Observer) -> None:
        """Add an observer of sessions."""
        self._of_sessions = (*self._of_sessions, observer)

    def rejected(self, rejection: Rejection) -> None:
        """Note a rejected document as an event."""
        where = f"{rejection.source} {rejection.name}".strip()
        self.history.note("configuration.rejected", where, rejection.why)

    def registered(self, runtime: RuntimeInfo) -> None:
        """See `Observer.registered`."""
        notify_each(self._of_sessions, lambda one: one.registered(runtime))

    def synchronized(self) -> None:
        """See `Observer.synchronized`."""
        keep_present()
        notify_each(self._of_sessions, lambda one: one.synchronized())

    def ended(self, why: str) -> None:
        """See `Observer.ended`."""
        if self.sessions.state is SessionState.SYNCHRONIZED:
            thaw()
        notify_each(self._of_sessions, lambda one: one.ended(why))

    def called(self, method: str) -> None:
        """See `Observer.called`."""
        notify_each(self._of_sessions, lambda one: one.called(method))

    def answered(self, method: str, seconds: float, code: int) -> None:
        """See `Observer.answered`."""
        notify_each(self._of_sessions, lambda one: one.answered(method, seconds, code))
