"""What is sent to a service manager, and when."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from nri_resmgr.app.background.supervisor import Part, Supervisor, Timing
from nri_resmgr.daemon.services import until_in_sync
from nri_resmgr.process.systemd import Notifier, notify_systemd, watchdog_interval
from nri_resmgr.topology.synthetic import parse_spec
from tests.daemon.daemon_process import daemon
from tests.stub.live import plugged, recording
from tests.waiting import until


@pytest.fixture
def system(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(tmp_path / "notify"))
        system.settimeout(5)
        yield system


def test_assignments_are_sent_in_one_message(
    tmp_path: Path, system: socket.socket
) -> None:
    with closing(Notifier(str(tmp_path / "notify"))) as notifier:
        notifier.send("READY=1", "STATUS=well")

    assert system.recv(100) == b"READY=1\nSTATUS=well"


def test_a_name_may_be_abstract() -> None:
    name = f"nri-resmgr-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(f"\0{name}")
        system.settimeout(5)
        with closing(Notifier(f"@{name}")) as notifier:
            notifier.send("WATCHDOG=1")
        found = system.recv(100)

    assert found == b"WATCHDOG=1"


def test_a_missing_service_manager_does_no_harm(tmp_path: Path) -> None:
    with closing(Notifier(str(tmp_path / "none"))) as notifier:
        notifier.send("READY=1")


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
def test_the_watchdog_interval_follows_the_environment(
    environment: dict[str, str], expected: float | None
) -> None:
    assert watchdog_interval(environment, 7) == expected


async def test_a_watchdog_gets_no_signal_while_an_essential_part_is_lost(
    tmp_path: Path, system: socket.socket
) -> None:
    healthy = [True]
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "40000"}
    plugin = recording([], "synchronize", "stop_container")
    async with plugged(tmp_path, plugin) as (_, stub):
        tried = asyncio.Event()
        notifying = asyncio.create_task(
            notify_systemd(
                given, lambda: healthy[0], lambda: until_in_sync(stub, tried)
            )
        )
        await asyncio.sleep(0.1)
        system.setblocking(False)
        with pytest.raises(BlockingIOError):
            system.recv(100)  # `nri-resmgr status` would not be answered yet
        system.setblocking(True)
        tried.set()
        first = [await asyncio.to_thread(system.recv, 100) for _ in range(2)]
        healthy[0] = False
        await asyncio.sleep(0.1)
        system.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                system.recv(100)
        await asyncio.sleep(0.2)
        with pytest.raises(BlockingIOError):
            system.recv(100)
        notifying.cancel()
        await asyncio.wait({notifying})

    assert first[1] == b"WATCHDOG=1"
    assert system.recv(100) == b"STOPPING=1"


async def ready_to_say() -> str:
    return "well"


async def test_a_part_that_cannot_say_that_it_is_ready_has_failed(
    tmp_path: Path, system: socket.socket
) -> None:
    path = tmp_path / "notify"
    path.rename(tmp_path / "aside")
    given = {"NOTIFY_SOCKET": str(path)}
    supervisor = Supervisor(timing=Timing(first_pause=0.05))
    run = partial(notify_systemd, given, lambda: True, ready_to_say)
    part = Part("systemd", run, "systemd gets no signal", is_essential=False)
    running = asyncio.create_task(supervisor.run([part]))
    await until(lambda: part.tries > 0)
    why = part.why
    (tmp_path / "aside").rename(path)
    first = await asyncio.to_thread(system.recv, 100)
    running.cancel()
    await asyncio.wait({running})

    expected = "systemd cannot be notified of READY=1: no such file or directory"
    assert (why, first) == (expected, b"READY=1\nSTATUS=well")


@pytest.mark.slow
async def test_a_lost_signal_is_sent_again_before_the_watchdog_ends_the_service(
    tmp_path: Path, system: socket.socket
) -> None:
    path, patience = tmp_path / "notify", 4.0
    given = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "4000000"}
    notifying = asyncio.create_task(notify_systemd(given, lambda: True, ready_to_say))
    for _ in range(3):  # the second signal is that of a tick
        await asyncio.to_thread(system.recv, 100)
    last = monotonic()
    path.rename(tmp_path / "aside")
    await asyncio.sleep(patience / 2 + 0.3)
    (tmp_path / "aside").rename(path)
    next_one = await asyncio.to_thread(system.recv, 100)
    took = monotonic() - last
    notifying.cancel()
    await asyncio.wait({notifying})

    assert next_one == b"WATCHDOG=1"
    assert took < patience - 0.2  # one signal at the next tick comes at its very end


@pytest.mark.process
async def test_a_daemon_is_ready_then_alive_then_stopping(
    tmp_path: Path, system: socket.socket
) -> None:
    given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    async with daemon(tmp_path, parse_spec("1s1n2c1t"), environment=given):
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
