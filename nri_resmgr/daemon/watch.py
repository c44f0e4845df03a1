"""Observers of sessions and decisions."""

from __future__ import annotations

import time
from typing import Any

from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import Sessions
from nri_resmgr.app.observing.tracing import Tracing
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo


class Watch(Observer):
    """Passes on what the stub reports to all observers.

    Attributes:
        started: When this was made, early in the process; UNIX nanoseconds.
        history: What happened.
        sessions: Which session it is.
        metrics: Counters; None where nothing can read them.
        tracing: Spans; None where no traces are wanted.
        witnesses: Those of them that observe decisions, for the policy.

    Args:
        counts: Whether there are to be metrics.
        traces: Whether there are to be traces.
    """

    def __init__(self, *, counts: bool, traces: bool) -> None:
        self.started = time.time_ns()
        self.history = History()
        self.sessions = Sessions(self.history)
        self.metrics = Metrics() if counts else None
        self.tracing = Tracing() if traces else None
        self._observers: tuple[Observer, ...] = (self.sessions,)
        if self.metrics is not None:
            self._observers = (self.sessions, self.metrics)
        found = (self.history, self.metrics, self.tracing)
        self.observers: tuple[DecisionObserver, ...] = tuple(
            one for one in found if one is not None
        )

    def tell(self, observer: Observer) -> None:
        """Pass on to one more observer what comes from now on."""
        self._observers = (*self._observers, observer)

    def rejected(self, rejection: Any) -> None:
        """Note a document that was not taken, as an event."""
        where = f"{rejection.source} {rejection.name}".strip()
        self.history.note("configuration.refused", where, rejection.why)

    def registered(self, runtime: RuntimeInfo) -> None:
        """Pass it on."""
        for one in self._observers:
            one.registered(runtime)

    def synchronized(self) -> None:
        """Pass it on."""
        for one in self._observers:
            one.synchronized()

    def lost(self, why: str) -> None:
        """Pass it on."""
        for one in self._observers:
            one.lost(why)

    def called(self, method: str) -> None:
        """Pass it on."""
        for one in self._observers:
            one.called(method)

    def answered(self, method: str, seconds: float, code: int) -> None:
        """Pass it on."""
        for one in self._observers:
            one.answered(method, seconds, code)
