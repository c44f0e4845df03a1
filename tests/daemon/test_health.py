"""When the daemon should be started anew, and when it is of no use yet."""

from __future__ import annotations

import asyncio
import socket

import attrs
import pytest

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.observing.sessions import SessionState
from nri_resmgr.daemon.health import liveness_problem, readiness_problem
from nri_resmgr.process.endpoint import EndpointTaken, HttpEndpoint, read_endpoint
from nri_resmgr.process.health import STUCK
from nri_resmgr.process.heartbeat import Heartbeat


@attrs.frozen
class OldHeartbeat:
    """A heartbeat of a given age."""

    age: float


@attrs.frozen
class Requests:
    """Requests, the oldest of which is open for so many seconds."""

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
def test_liveness_follows_heartbeat_and_running_requests(
    age: float, busy: float, expected: str
) -> None:
    assert liveness_problem(OldHeartbeat(age), Requests(busy)) == expected


def test_a_lost_part_fails_the_liveness_probe() -> None:
    @attrs.frozen
    class Parts:
        """Parts with these problems."""

        found: tuple[str, ...]

        def problems(self) -> tuple[str, ...]:
            return self.found

    well = OldHeartbeat(0.0), Requests(0.0)

    assert liveness_problem(*well, Parts(())) == ""
    assert liveness_problem(*well, Parts(("x fails", "y too"))) == "x fails; y too"


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
def test_readiness_follows_the_session(
    state: SessionState, why: str, expected: str
) -> None:
    assert readiness_problem(state, why) == expected


@pytest.mark.slow  # waits for real timers
async def test_a_heartbeat_measures_how_long_the_loop_is_blocked() -> None:
    heart = Heartbeat()
    beating = asyncio.create_task(heart.beat())
    await asyncio.sleep(until_tick(1.0) + 0.95)  # it beats with the seconds
    held_up = asyncio.get_running_loop().time() + 0.35
    while asyncio.get_running_loop().time() < held_up:
        pass  # no other task gets a turn
    await asyncio.sleep(0.05)
    lag, worst, age = heart.lag, heart.worst_lag, heart.age
    beating.cancel()

    assert 0.2 <= lag == worst
    assert age < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8891", HttpEndpoint("127.0.0.1", 8891)),
        ("127.0.0.1:0", HttpEndpoint("127.0.0.1", 0)),
        ("[10.0.0.7]:80", HttpEndpoint("10.0.0.7", 80)),
        ("[::1]:80", HttpEndpoint("::1", 80)),
    ],
)
def test_an_endpoint_is_read_and_written(text: str, expected: HttpEndpoint) -> None:
    assert read_endpoint("--http-endpoint", text) == expected
    assert read_endpoint("--http-endpoint", str(expected)) == expected


def test_an_endpoint_without_an_address_listens_on_localhost_only() -> None:
    with read_endpoint("--http-endpoint", ":0").listen() as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_two_colons_stand_for_every_address() -> None:
    with read_endpoint("--http-endpoint", "[::]:0").listen() as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "127.0.0.2"):
            with socket.create_connection((address, port), timeout=5):
                pass
        with pytest.raises(EndpointTaken, match="address already in use"):
            HttpEndpoint("::", port).listen()
