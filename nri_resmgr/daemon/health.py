"""Liveness and readiness of the daemon."""

from __future__ import annotations

from typing import Protocol

from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.process.health import STUCK, Parts, Pulse, process_problem


class Busy(Protocol):
    """Knows of unanswered requests."""

    @property
    def busy_seconds(self) -> float:
        """Seconds since which a request is open."""


def liveness_problem(
    heartbeat: Pulse, requests: Busy, parts: Parts | None = None
) -> str:
    """Return why the daemon should be restarted; empty if it is healthy."""
    if why := process_problem(heartbeat, parts):
        return why
    if requests.busy_seconds > STUCK:
        return f"a request has been open for {requests.busy_seconds:.0f} s"
    return ""


def readiness_problem(state: SessionState, ended_why: str) -> str:
    """Return why no containers are placed now; empty if the node is in sync."""
    if state is SessionState.SYNCHRONIZED:
        return ""
    if state is SessionState.REGISTERED:
        return "the runtime has not listed its containers yet"
    return f"no session with a runtime: {ended_why}" if ended_why else "no session yet"
