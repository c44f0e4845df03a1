"""Whether the daemon lives, and whether it is of use."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Final, Protocol

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observing.sessions import SessionState

_INTERVAL: Final = 1.0  # seconds
_WINDOW: Final = 60  # heartbeats that the worst lag is looked for in

# A runtime waits for two seconds, then it goes on without us. What takes longer than
# this will not come any more.
STUCK: Final = 10.0  # seconds


class Heartbeat:
    """Feels how late the event loop is."""

    def __init__(self) -> None:
        self._last = monotonic()
        self._lags: deque[float] = deque([0.0], maxlen=_WINDOW)

    @property
    def lag(self) -> float:
        """Seconds that the loop was late at the last beat."""
        return self._lags[-1]

    @property
    def worst_lag(self) -> float:
        """Seconds that it was late at most in the last minute."""
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
    """Who knows of requests that are not answered."""

    @property
    def busy_seconds(self) -> float:
        """For how long there has been one."""


class Pulse(Protocol):
    """Who knows whether the loop turns."""

    @property
    def age(self) -> float:
        """Seconds since it last did."""


def sickness(heartbeat: Pulse, requests: Busy) -> str:
    """Say in a sentence why the daemon should be started anew; nothing if it is well.

    A loop that does not turn gives no answer at all, which says the same.
    """
    if heartbeat.age > STUCK:
        return f"no heartbeat for {heartbeat.age:.0f} s"
    if requests.busy_seconds > STUCK:
        return f"a request has been open for {requests.busy_seconds:.0f} s"
    return ""


def unreadiness(state: SessionState, lost_why: str) -> str:
    """Say in a sentence why nothing is placed now; nothing if all is in sync."""
    if state is SessionState.SYNCHRONIZED:
        return ""
    if state is SessionState.REGISTERED:
        return "the runtime has not told yet what runs"
    return f"no session with a runtime: {lost_why}" if lost_why else "no session yet"
