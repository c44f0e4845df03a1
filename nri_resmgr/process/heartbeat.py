"""The heartbeat: the lag of the event loop, and whether it still runs."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Final

from nri_resmgr.app.background.periodic import until_tick

_INTERVAL: Final = 1.0  # seconds
_WINDOW: Final = 60  # heartbeats over which the worst lag is taken


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
