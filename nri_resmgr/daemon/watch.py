"""Who is told of sessions and decisions; built when the policy is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo


class Watch(Observer):
    """Passes on what the stub tells to observers that are built later.

    The stub needs its observer before the runtime hears of us; those who want to
    know need more imports than a start can afford.

    Attributes:
        started: When this was made, early in the process; UNIX nanoseconds.
        history: What happened; None until `build`.
        sessions: Which session it is; None until `build`.
        metrics: Counters; None until `build`, and where nobody can ask for them.
        tracing: Spans; None until `build`, and where nobody wants traces.

    Args:
        counts: Whether there are to be metrics.
        traces: Whether there are to be traces.
    """

    def __init__(self, *, counts: bool, traces: bool) -> None:
        self._counts = counts
        self._traces = traces
        self.started = time.time_ns()
        self._observers: tuple[Observer, ...] = ()
        self.history: Any = None
        self.sessions: Any = None
        self.metrics: Any = None
        self.tracing: Any = None

    def build(self) -> Sequence[Any]:
        """Make them; return the witnesses among them, for the policy."""
        from nri_resmgr.app.history import History
        from nri_resmgr.app.sessions import Sessions

        self.history = History()
        self.sessions = Sessions(self.history)
        self._observers = (self.sessions,)
        witnesses = [self.history]
        if self._counts:
            from nri_resmgr.app.metrics import Metrics

            self.metrics = Metrics()
            self._observers = (self.sessions, self.metrics)
            witnesses.append(self.metrics)
        if self._traces:
            from nri_resmgr.app.tracing import Tracing

            self.tracing = Tracing()
            witnesses.append(self.tracing)
        return witnesses

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

    def asked(self, method: str) -> None:
        """Pass it on."""
        for one in self._observers:
            one.asked(method)

    def answered(self, method: str, seconds: float, code: int) -> None:
        """Pass it on."""
        for one in self._observers:
            one.answered(method, seconds, code)
