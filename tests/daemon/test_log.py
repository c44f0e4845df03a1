"""The real daemon's log: switched while it runs, and silent about pods' secrets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.stub import Container, LinuxCpu, LinuxResources, Mount, Pod
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT, nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("1s2n2c1t")
SECRET: Final = "hunter2"  # noqa: S105 - a value that no log may have

OWN: Final = Workload("own", QosClass.GUARANTEED, 1000)
MANY: Final = Workload("many", QosClass.BURSTABLE, 500)
HUGE: Final = Workload("huge", QosClass.GUARANTEED, 64000)


def secretive_pod(workload: Workload) -> Pod:
    reported = {"mine/token": SECRET}
    return msgspec.structs.replace(workload.pod, annotations=reported, labels=reported)


def secretive_container(workload: Workload) -> Container:
    volume = Mount(
        destination=f"/etc/{SECRET}",
        type="bind",
        source=f"/var/lib/kubelet/pods/1/volumes/{SECRET}",
        options=("bind", f"password={SECRET}"),
    )
    return msgspec.structs.replace(
        workload.container,
        env=(f"PASSWORD={SECRET}",),
        args=("serve", f"--password={SECRET}"),
        mounts=(volume,),
        annotations={"mine/token": SECRET},
    )


async def play(running: RunningDaemon) -> list[str]:
    """Let everything happen to containers that can; return the refusals."""
    runtime, refusals = running.runtime, []
    for workload in (OWN, MANY, HUGE):
        pod = await runtime.run_pod(secretive_pod(workload))
        container = secretive_container(workload)
        try:
            await runtime.create_container(pod.id, container)
            await runtime.start_container(container.id)
        except PluginRefused as refusal:
            refusals.append(str(refusal))
    more = LinuxResources(cpu=LinuxCpu(shares=600))
    await runtime.update_container(MANY.container.id, more)
    await runtime.stop_container(OWN.container.id)
    await runtime.remove_container(OWN.container.id)
    await runtime.stop_pod(OWN.pod.id)
    return refusals


@pytest.mark.parametrize("log_format", ["text", "json"])
async def test_secrets_of_pods_are_in_no_line(tmp_path: Path, log_format: str) -> None:
    flags = ("--log-debug", "*", "--log-format", log_format)
    async with daemon(tmp_path, MACHINE, *flags) as running:
        refusals = await play(running)
        await running.runtime.stop()  # and all of them again in a new session
        await running.runtime.start()
        await running.runtime.synchronized("90-resource-policy")
    text = running.log.read_text()

    assert len(refusals) == 1
    assert "container.adopted" in text  # debug was on
    assert SECRET not in text
    assert SECRET not in refusals[0]


async def test_a_signal_turns_debug_of_everything_on_and_off(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE, "--log-level", "info") as running:
        reported = []
        for number in range(2):
            running.process.send_signal(signal.SIGUSR1)
            line = await running.line("log.debug-toggled", number)
            reported.append(line["on"])

    assert reported == [True, False]


async def test_a_rotated_log_is_reopened(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE) as running:
        await running.place(OWN)
        await running.line("container.placed")
        running.log.rename(tmp_path / "log.1")
        await running.place(MANY)
        line = await running.line("container.placed")

    assert line["title"].endswith("/many/many")
    assert '"container.placed"' in (tmp_path / "log.1").read_text()


async def test_a_full_disk_delays_no_reply(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE, "--log-to", "/dev/full") as running:
        await running.place(OWN)

    assert OWN.container.id in running.runtime.world.containers


class StuckPipe:
    """Standard error of a daemon that is full, and that nothing reads.

    Args:
        folder: For the pipe.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "pipe"
        os.mkfifo(path)
        # Kept open for both, so that opening it for writing does not wait.
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.prefix = ("sh", "-c", 'exec "$@" 2>"$0"', str(path))
        self._read = b""
        self.fill()

    def fill(self) -> None:
        with suppress(BlockingIOError):
            while True:
                os.write(self._end, b"\n" * 4096)

    def lines(self) -> list[dict[str, Any]]:
        """Read what there is; return all lines so far."""
        with suppress(BlockingIOError):
            while True:
                self._read += os.read(self._end, 1 << 16)
        whole = self._read[: self._read.rfind(b"\n") + 1]
        return [json.loads(line) for line in whole.split(b"\n") if line]


@pytest.fixture
def stuck(tmp_path: Path) -> StuckPipe:
    return StuckPipe(tmp_path)


async def metrics(address: str) -> dict[str, float]:
    text = await asyncio.to_thread(
        lambda: urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    )
    found = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
    return {name: float(number) for name, _, number in found}


async def test_a_stuck_log_reader_delays_no_reply_and_lost_lines_are_counted(
    tmp_path: Path, stuck: StuckPipe
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = ("--log-to", "stderr", "--log-debug", "*", "--http-endpoint", address)
    async with daemon(tmp_path, MACHINE, *flags, prefix=stuck.prefix) as running:
        pod = await running.runtime.run_pod(OWN.pod)
        lost = waited = 0.0
        async with asyncio.timeout(120):
            while not lost:
                for _ in range(50):
                    await running.runtime.create_container(pod.id, OWN.container)
                    await running.runtime.remove_container(OWN.container.id)
                found = await metrics(address)
                lost = found["nri_resmgr_log_lines_lost_total"]
                waited = max(waited, found["nri_resmgr_log_lines_waiting"])
            events = []
            while "log.lines-lost" not in events:
                events = [line["event"] for line in stuck.lines()]
                await asyncio.sleep(0.05)
        found = await metrics(address)

    reports = [one for one in stuck.lines() if one["event"] == "log.lines-lost"]
    assert waited > 100
    assert found["nri_resmgr_log_lines_waiting"] == 0
    lost = sum(one["lines"] for one in reports)
    assert lost == found["nri_resmgr_log_lines_lost_total"] > 0
    assert reports[0]["why"] == "the destination hangs"
    assert "session.registered" in events  # the first lines are kept


async def test_a_stuck_log_reader_does_not_delay_the_end(
    tmp_path: Path, stuck: StuckPipe
) -> None:
    flags = ("--log-to", "stderr", "--log-debug", "*")
    async with daemon(tmp_path, MACHINE, *flags, prefix=stuck.prefix) as running:
        await running.place(OWN)
        running.process.terminate()
        async with asyncio.timeout(15):
            status = await running.process.wait()

    assert status == 0
    assert stuck.lines() == []


def test_an_error_message_that_nothing_reads_does_not_delay_the_end(
    stuck: StuckPipe,
) -> None:
    """The sentence of an error goes to standard error as well."""
    done = subprocess.run(
        (
            *(*stuck.prefix, sys.executable, "-m", "nri_resmgr", "run"),
            *("--host-root", "/nowhere", "--state-dir", ""),
        ),
        cwd=ROOT,
        timeout=15,
        check=False,
    )

    assert done.returncode == 1
    assert stuck.lines() == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--log-to", "journal"),
            (
                "cannot log to 'journal': expected one of auto, stderr, syslog, "
                "journald, or a path with a slash"
            ),
        ),
        (
            ("--log-to", "/nowhere/log"),
            "cannot log to '/nowhere/log': no such file or directory",
        ),
    ],
)
def test_an_impossible_log_is_refused_before_the_start(
    flags: tuple[str, ...], sentence: str
) -> None:
    done = nri_resmgr("run", *flags)

    assert (done.returncode, done.stderr) == (2, f"nri-resmgr: {sentence}\n")
