"""What a service manager is told, and when."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.daemon.systemd import Notifier, watchdog_interval
from nri_resmgr.topology.synthetic import parse_spec
from tests.daemon.daemon_process import daemon


@pytest.fixture
def system(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(tmp_path / "notify"))
        system.settimeout(5)
        yield system


def test_words_go_out_together(tmp_path: Path, system: socket.socket) -> None:
    Notifier(str(tmp_path / "notify")).send("READY=1", "STATUS=well")

    assert system.recv(100) == b"READY=1\nSTATUS=well"


def test_a_name_may_be_abstract() -> None:
    name = f"nri-resmgr-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(f"\0{name}")
        system.settimeout(5)
        Notifier(f"@{name}").send("WATCHDOG=1")
        found = system.recv(100)

    assert found == b"WATCHDOG=1"


def test_nobody_there_does_no_harm(tmp_path: Path) -> None:
    Notifier(str(tmp_path / "none")).send("READY=1")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, None, id="no watchdog"),
        pytest.param({"WATCHDOG_USEC": "30000000"}, 15.0, id="half of its patience"),
        pytest.param({"WATCHDOG_USEC": "0"}, None, id="one that is off"),
        pytest.param({"WATCHDOG_USEC": "soon"}, None, id="nonsense"),
        pytest.param(
            {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}, 1.0, id="it means us"
        ),
        pytest.param(
            {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"},
            None,
            id="it means others",
        ),
    ],
)
def test_the_watchdog_is_as_the_environment_says(
    environment: dict[str, str], expected: float | None
) -> None:
    assert watchdog_interval(environment, 7) == expected


@pytest.mark.process
async def test_a_daemon_is_ready_then_alive_then_stopping(
    tmp_path: Path, system: socket.socket
) -> None:
    told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    async with daemon(tmp_path, parse_spec("1s1n2c1t"), environment=told):
        first = [await asyncio.to_thread(system.recv, 100) for _ in range(3)]
    system.setblocking(False)
    last = b""
    for _ in range(100):
        try:
            last = system.recv(100)
        except BlockingIOError:
            break

    assert first[0].startswith(b"READY=1\nSTATUS=in sync with containerd ")
    assert (first[1:], last) == ([b"WATCHDOG=1"] * 2, b"STOPPING=1")
