"""How far a session got is known, in whichever order its steps are reported."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from nri_resmgr.app.observing.history import History
from nri_resmgr.app.observing.sessions import SessionState, SessionTracker
from nri_resmgr.stub import RuntimeInfo

RUNTIME = RuntimeInfo("containerd", "2.1.0")
REGISTERED = ("registered", RUNTIME)
SYNCHRONIZED = ("synchronized",)
ENDED = ("ended", "end of file")


def played(*steps: tuple[Any, ...]) -> tuple[SessionTracker, list[str]]:
    history = History(now=lambda: 0)
    sessions = SessionTracker(history, count().__next__)
    for name, *values in steps:
        getattr(sessions, name)(*values)
    return sessions, [row.kind for row in history.since(0, 99)]


@pytest.mark.parametrize(
    ("steps", "number", "state"),
    [
        pytest.param((), 0, "disconnected", id="before the first"),
        pytest.param((REGISTERED,), 1, "registered", id="before it is in step"),
        pytest.param((REGISTERED, SYNCHRONIZED), 1, "synchronized", id="in step"),
        pytest.param(
            (SYNCHRONIZED, REGISTERED),
            1,
            "synchronized",
            id="a runtime that synchronizes before we know that we are registered",
        ),
        pytest.param((REGISTERED, ENDED), 1, "disconnected", id="after the end"),
        pytest.param(
            (REGISTERED, SYNCHRONIZED, ENDED, REGISTERED),
            2,
            "registered",
            id="the next one begins anew",
        ),
    ],
)
def test_the_phase_of_the_session_is_reported(
    steps: tuple[tuple[Any, ...], ...], number: int, state: str
) -> None:
    sessions, _ = played(*steps)

    assert (sessions.number, sessions.state) == (number, SessionState(state))


def test_the_reason_of_the_last_end_is_kept() -> None:
    sessions, _ = played(REGISTERED, ENDED, REGISTERED)

    assert (sessions.ended_at, sessions.ended_why) == (2, "end of file")


def test_attempts_that_fail_alike_are_noted_once() -> None:
    refused = ("ended", "connection refused")
    _, rows = played(REGISTERED, ENDED, refused, refused, refused, REGISTERED)

    assert rows == [
        "session.registered",
        "session.ended",
        "session.failed",
        "session.registered",
    ]
