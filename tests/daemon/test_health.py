"""When the daemon should be started anew, and when it is of no use yet."""

from __future__ import annotations

import asyncio
import socket

import attrs
import pytest

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.daemon.endpoint import EndpointTaken, HttpEndpoint, read_endpoint
from nri_resmgr.daemon.health import (
    STUCK,
    Heartbeat,
    liveness_problem,
    readiness_problem,
)


@attrs.frozen
class OldHeartbeat:
    """A heartbeat, as old as it is said to be."""

    age: float


@attrs.frozen
class Requests:
    """What is open, for as long as it is said to be."""

    busy_seconds: float


@pytest.mark.parametrize(
    ("age", "busy", "expected"),
    [
        pytest.param(0.9, 0.0, "", id="well and idle"),
        pytest.param(0.9, 1.5, "", id="a request may take its time"),
        pytest.param(STUCK + 2, 0.0, "no heartbeat for 12 s", id="a loop that hangs"),
        pytest.param(
            0.9, STUCK + 5, "a request has been open for 15 s", id="a stuck request"
        ),
    ],
)
def test_sickness(age: float, busy: float, expected: str) -> None:
    assert liveness_problem(OldHeartbeat(age), Requests(busy)) == expected


@pytest.mark.parametrize(
    ("state", "why", "expected"),
    [
        (SessionState.SYNCHRONIZED, "", ""),
        (SessionState.SYNCHRONIZED, "end of file", ""),
        (SessionState.REGISTERED, "", "the runtime has not listed its containers yet"),
        (SessionState.DISCONNECTED, "", "no session yet"),
        (
            SessionState.DISCONNECTED,
            "end of file",
            "no session with a runtime: end of file",
        ),
    ],
)
def test_unreadiness(state: SessionState, why: str, expected: str) -> None:
    assert readiness_problem(state, why) == expected


@pytest.mark.slow  # waits for real timers
async def test_a_heartbeat_feels_who_blocks_the_loop() -> None:
    heart = Heartbeat()
    beating = asyncio.create_task(heart.beat())
    await asyncio.sleep(until_tick(1.0) + 0.95)  # it beats with the seconds
    held_up = asyncio.get_running_loop().time() + 0.35
    while asyncio.get_running_loop().time() < held_up:
        pass  # nobody else gets a turn
    await asyncio.sleep(0.05)
    lag, worst, age = heart.lag, heart.worst_lag, heart.age
    beating.cancel()

    assert 0.2 <= lag == worst
    assert age < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8891", HttpEndpoint("", 8891)),
        ("127.0.0.1:0", HttpEndpoint("127.0.0.1", 0)),
        ("[::1]:80", HttpEndpoint("::1", 80)),
    ],
)
def test_an_endpoint_is_written_as_it_is_read(
    text: str, expected: HttpEndpoint
) -> None:
    assert read_endpoint(text) == expected
    assert str(expected) == text


def test_an_endpoint_without_an_address_is_every_address() -> None:
    with HttpEndpoint("", 0).listen() as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        with pytest.raises(EndpointTaken, match="address already in use"):
            HttpEndpoint("", port).listen()
