"""The commands ask the real daemon, while a runtime keeps it busy."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon

pytestmark = pytest.mark.process

WEB = Workload("web", QosClass.GUARANTEED, 2000)
LOGS = Workload("logs", QosClass.BURSTABLE, 500)
HUGE = Workload("huge", QosClass.GUARANTEED, 64_000)
FILE = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec: {reservedResources: {cpu: 2}}
"""


@asynccontextmanager
async def at_work(folder: Path, *flags: str) -> AsyncIterator[RunningDaemon]:
    """Run a daemon with a container of its own CPUs, one that shares, one refused."""
    socket = ("--control-socket", str(socket_in(folder)))
    # What flags say last counts.
    async with daemon(folder, parse_spec("1s2n4c1t"), *socket, *flags) as running:
        for workload in (WEB, LOGS, HUGE):
            with suppress(PluginRefused):
                await running.place(workload)
        await running.line("control.listening")
        yield running


def socket_in(folder: Path) -> Path:
    return folder / "run" / "control.sock"


async def ask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"NRI_RESMGR_CONTROL_SOCKET": str(socket_in(folder))}
    return await asyncio.to_thread(nri_resmgr, *words, env=env)


async def test_every_command_is_answered(tmp_path: Path) -> None:
    async with at_work(tmp_path):
        status = await ask(tmp_path, "status")
        state = await ask(tmp_path, "status", "-o", "json")
        web = await ask(tmp_path, "explain", "default/web")
        huge = await ask(tmp_path, "explain", "huge/huge")
        events = await ask(tmp_path, "events", "--since", "2")
        top = await ask(tmp_path, "top", "--once")
        log = await ask(tmp_path, "log", "debug", "stub.*")

    done = (status, state, web, huge, events, top, log)
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 7
    assert "policy         TopologyAwarePolicy" in status.stdout.splitlines()
    assert json.loads(state.stdout)["session"]["state"] == "synchronized"
    assert "  decided  CPUs 4-5 (exclusive: 4-5); memory of nodes 1" in web.stdout
    assert "asks for 64 exclusive CPUs" in huge.stdout
    kinds = [line.split("  ")[2] for line in events.stdout.splitlines()]
    assert kinds[-3:] == ["container.placed", "container.placed", "container.refused"]
    assert "\x1b" not in top.stdout
    assert "socket 0  rsss | AAss\n" in top.stdout
    assert "stub.stub" in log.stdout


async def test_events_are_followed_until_the_daemon_ends(tmp_path: Path) -> None:
    async with at_work(tmp_path) as running:
        following = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nri_resmgr", "events", "-f", "-o", "json"),
            *("--control-socket", str(socket_in(tmp_path))),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert following.stdout is not None
        kinds, refused = [], {}
        while "container.refused" not in kinds:
            refused = json.loads(await following.stdout.readline())
            kinds.append(refused["kind"])
        await running.runtime.stop_pod(WEB.pod.id)
        last = json.loads(await following.stdout.readline())
        running.process.terminate()
        _, complaint = await following.communicate()

    assert kinds[0] == "EventList"
    assert (refused["title"], refused["podUid"]) == ("default/huge/huge", HUGE.pod.uid)
    assert (last["kind"], last["containers"][0]["rule"]) == (
        "container.released",
        "released",
    )
    assert following.returncode == 1
    assert complaint.decode().endswith("the daemon has ended\n")


async def test_a_reload_reads_the_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(FILE)
    async with at_work(tmp_path, "--config-file", str(file)):
        file.write_text(FILE.replace("cpu: 2", "cpu: 1"))
        good = await ask(tmp_path, "reload")
        file.write_text("kind: nonsense")
        bad = await ask(tmp_path, "reload")
        status = await ask(tmp_path, "status")
        events = await ask(tmp_path, "events")

    where = f"TopologyAwarePolicy from file {file}"
    assert (good.returncode, good.stdout.splitlines()) == (
        0,
        [f"{where}, generation 2: decided", "in force: no update is pending"],
    )
    assert bad.returncode == 2
    assert f"from file {file}: " in status.stdout
    *_, last = events.stdout.splitlines()
    assert last.split("  ")[2:4] == ["configuration.rejected", f"file {file}"]


async def test_a_forced_reload_may_take_exclusive_cpus(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(FILE)
    async with at_work(tmp_path, "--config-file", str(file)):
        file.write_text(
            FILE.replace("cpu: 2}", "cpu: 1}, availableResources: {cpu: 2}")
        )
        refused = await ask(tmp_path, "reload")
        kept = await ask(tmp_path, "explain", "default/web")
        forced = await ask(tmp_path, "reload", "--force")
        after = await ask(tmp_path, "explain", "default/web")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "default/web/web has CPU 4-5 and would have none" in refused.stderr
    assert "reload --force" in refused.stderr
    assert "  decided  CPUs 4-5 (exclusive: 4-5);" in kept.stdout
    assert (forced.returncode, forced.stderr) == (0, "")
    assert f"from file {file}, generation 2: decided" in forced.stdout
    assert "exclusive" not in after.stdout.partition("decided")[2].partition("\n")[0]


async def test_the_next_daemon_replaces_the_socket_of_a_killed_one(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path) as running:
        running.process.kill()
        await running.process.wait()
        left = socket_in(tmp_path).exists()
        without = await ask(tmp_path, "status")
    left_there = ("--control-socket", str(socket_in(tmp_path)))
    async with at_work(tmp_path / "next", *left_there):
        beside = await ask(tmp_path, "status")

    assert left
    assert (without.returncode, without.stdout) == (1, "")
    assert without.stderr.startswith("nri-resmgr: no daemon listens on ")
    assert beside.returncode == 0


async def test_a_daemon_removes_its_socket_at_its_end(tmp_path: Path) -> None:
    async with at_work(tmp_path) as running:
        running.process.send_signal(signal.SIGTERM)
        await running.process.wait()

        assert not socket_in(tmp_path).exists()


async def test_without_a_control_socket_containers_are_placed_all_the_same(
    tmp_path: Path,
) -> None:
    blocked = tmp_path / "run"
    blocked.touch()  # a file where the socket's folder should be
    flags = ("--control-socket", str(socket_in(tmp_path)))
    async with daemon(tmp_path, parse_spec("1s2n4c1t"), *flags) as running:
        line = await running.line("part.failed")
        await running.place(WEB)

    assert line["part"] == "control"
    assert "choose another --control-socket" in line["why"]


async def test_top_draws_on_a_terminal_until_q_and_restores_it(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path):
        ours, theirs = pty.openpty()
        top = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nri_resmgr", "top", "--interval", "0.1"),
            *("--control-socket", str(socket_in(tmp_path))),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        drawn = await asyncio.to_thread(read_frames, ours, 3)
        os.write(ours, b"q")
        rest = asyncio.to_thread(read_all, ours)
        drawn += await rest
        status = await top.wait()
        os.close(ours)

    assert status == 0
    # A line is erased before it is written: after one as wide as the terminal, the
    # cursor is still on its last column.
    assert drawn.startswith(b"\x1b[?1049h\x1b[?25l\x1b[H\x1b[K\x1b[1mnri-resmgr")
    assert drawn.endswith(b"\x1b[?25h\x1b[?1049l")
    assert b"\x1b[1;30;46mA\x1b[0m" in drawn


def read_frames(terminal: int, count: int) -> bytes:
    found = b""
    while found.count(b"\x1b[H") < count:
        found += os.read(terminal, 1 << 16)
    return found


def read_all(terminal: int) -> bytes:
    found = b""
    with suppress(OSError):  # EIO: the other end is closed
        while piece := os.read(terminal, 1 << 16):
            found += piece
    return found


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("explain", "a/b/c/d"), "'a/b/c/d': expected [NAMESPACE/]POD[/CONTAINER]"),
        (("explain", "a//c"), "'a//c': expected [NAMESPACE/]POD[/CONTAINER]"),
        (("events", "--since", "x"), "'x' is not the number of an event"),
        (("top", "--interval", "0"), "'0' is not 0.1 to 3600 seconds"),
    ],
)
def test_a_mistake_is_reported_in_a_sentence(words: tuple[str, ...], why: str) -> None:
    done = nri_resmgr(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_client_without_the_right_is_refused(tmp_path: Path) -> None:
    socket_in(tmp_path).parent.mkdir()
    socket_in(tmp_path).touch(0o000)
    done = nri_resmgr("status", "--control-socket", socket_in(tmp_path), weak=True)

    assert done.returncode == 1
    assert done.stderr.endswith("only root has access\n")
