"""Liveness and readiness of the daemon."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Final, Protocol

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observing.sessions import SessionState

_INTERVAL: Final = 1.0  # seconds
_WINDOW: Final = 60  # heartbeats over which the worst lag is taken

# A runtime waits two seconds, then it continues without this plugin. A request that
# takes longer than this is not expected to end.
STUCK: Final = 10.0  # seconds


class Heartbeat:
    """Measures the lag of the event loop."""

    def __init__(self) -> None:
        self._last = monotonic()
        self._lags: deque[float] = deque([0.0], maxlen=_WINDOW)

    @property
    def lag(self) -> float:
        """Lag at the last beat, in seconds."""
        return self._lags[-1]

    @property
    def worst_lag(self) -> float:
        """Largest lag in the last minute, in seconds."""
        return max(self._lags)

    @property
    def age(self) -> float:
        """Seconds since the last beat."""
        return monotonic() - self._last

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            delay = until_tick(_INTERVAL)
            due = monotonic() + delay
            await asyncio.sleep(delay)
            self._last = monotonic()
            self._lags.append(max(self._last - due, 0.0))


class Busy(Protocol):
    """Knows of unanswered requests."""

    @property
    def busy_seconds(self) -> float:
        """Seconds since which a request is open."""


class Pulse(Protocol):
    """Knows when the event loop last ran."""

    @property
    def age(self) -> float:
        """Seconds since the last beat."""


def liveness_problem(heartbeat: Pulse, requests: Busy) -> str:
    """Return why the daemon should be restarted; empty if it is healthy.

    A blocked event loop does not answer at all, which fails the probe as well.
    """
    if heartbeat.age > STUCK:
        return f"no heartbeat for {heartbeat.age:.0f} s"
    if requests.busy_seconds > STUCK:
        return f"a request has been open for {requests.busy_seconds:.0f} s"
    return ""


def readiness_problem(state: SessionState, lost_why: str) -> str:
    """Return why no containers are placed now; empty if the node is in sync."""
    if state is SessionState.SYNCHRONIZED:
        return ""
    if state is SessionState.REGISTERED:
        return "the runtime has not listed its containers yet"
    return f"no session with a runtime: {lost_why}" if lost_why else "no session yet"
