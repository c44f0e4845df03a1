"""Counts events in plain integers, so that requests stay cheap; scrapes do the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Final

from nri_proto import PLUGIN_METHODS, Code
from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Histogram, Metric, Series, single
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.policy.events import Created, Event
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values import ResmgrError

_CAPITAL: Final = re.compile("(?<!^)(?=[A-Z])")

_OTHER: Final = "other"


class Metrics(DecisionObserver, Observer):
    """Counts decisions, requests and sessions.

    Counters must not fall to zero with a new session: they live as long as the daemon.

    Attributes:
        is_on: Whether anything can read the counters; otherwise only the state of the
            session and the open requests are noted.
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._events: Counter[type] = Counter()
        self._rules: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._drift: Counter[str] = Counter()
        self._updates = 0
        self._sessions = 0
        self._ended = 0
        self._open = 0
        self._idle_until = monotonic()
        self.is_registered = False
        self.is_synchronized = False

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Count an event, the applied rules, and the source of the request."""
        if not self.is_on:
            return
        kind = type(event)
        self._events[kind] += 1
        for reason in decision.reasons:
            self._rules[reason.rule] += 1
        if kind is Created:
            self._sources[event.spec.source] += 1  # type: ignore[union-attr] # by its kind
        if updates := decision.updates:
            self._updates += len(updates)

    def refused(self, subject: Subject, error: ResmgrError) -> None:  # noqa: ARG002 - no pods in metrics
        """Count a refusal by its kind of error."""
        self._refusals[type(error).__name__] += 1

    def drift(self, kind: str) -> None:
        """Count a container by what differs from the decision, such as ``cpus``."""
        self._drift[kind] += 1

    def registered(self, runtime: RuntimeInfo) -> None:  # noqa: ARG002 - of any runtime
        """Count a started session."""
        self._sessions += 1
        self.is_registered = True

    def synchronized(self) -> None:
        """Note that the session is synchronized."""
        self.is_synchronized = True

    def ended(self, why: str) -> None:  # noqa: ARG002 - the log has the reasons
        """Count a lost session; its open requests are dropped."""
        self._ended += 1
        self._open = 0
        self.is_registered = self.is_synchronized = False

    def called(self, method: str) -> None:  # noqa: ARG002 - any
        """Note that a request arrived."""
        if not self._open:
            self._idle_until = monotonic()
        self._open += 1

    def answered(self, method: str, seconds: float, code: int) -> None:
        """Count an answer and its duration."""
        self._open = max(self._open - 1, 0)
        if not self.is_on:
            return
        # Labels must come from a fixed set: a peer could send any name.
        if method not in PLUGIN_METHODS:
            method = _OTHER
        self._answers[method, code] += 1
        # On the path of each request: the key nearly always exists.
        try:
            self._seconds[method].add(seconds)
        except KeyError:
            self._seconds[method] = first = Histogram()
            first.add(seconds)

    @property
    def busy_seconds(self) -> float:
        """Seconds for which there has always been an open request; 0 if none is."""
        return monotonic() - self._idle_until if self._open else 0.0

    def series(self) -> Iterator[Series]:
        """Yield all counters."""
        yield Series(
            table.REQUESTS,
            {(method, _status(code)): n for (method, code), n in self._answers.items()},
        )
        seconds = {(method,): one for method, one in self._seconds.items()}
        yield Series(table.REQUEST_SECONDS, seconds)
        yield single(table.OPEN_REQUESTS, self._open)
        events = {(_label(kind),): count for kind, count in self._events.items()}
        yield Series(table.DECISIONS, events)
        yield _by_word(table.RULES, self._rules)
        yield _by_word(table.REFUSALS, self._refusals)
        yield _by_word(table.SOURCES, self._sources)
        yield _by_word(table.DRIFT, self._drift)
        yield single(table.UPDATES, self._updates)
        yield single(table.SESSIONS, self._sessions)
        yield single(table.SESSIONS_ENDED, self._ended)
        yield single(table.CONNECTED, int(self.is_registered))
        yield single(table.SYNCHRONIZED, int(self.is_synchronized))


def _label(event: type) -> str:
    """Return ``pod-created`` for `PodCreated`."""
    return _CAPITAL.sub("-", event.__name__).lower()


def _by_word(metric: Metric, counts: Mapping[str, int]) -> Series:
    return Series(metric, {(str(word),): count for word, count in counts.items()})


def _status(code: int) -> str:
    try:
        return Code(code).name.lower().replace("_", "-")
    except ValueError:
        return _OTHER
