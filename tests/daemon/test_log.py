"""The real daemon's log: switched while it runs, and silent about pods' secrets."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.stub import Container, LinuxCpu, LinuxResources, Mount, Pod
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("1s2n2c1t")
SECRET: Final = "hunter2"  # noqa: S105 - that it is told nowhere is what is tested

OWN: Final = Workload("own", QosClass.GUARANTEED, 1000)
MANY: Final = Workload("many", QosClass.BURSTABLE, 500)
HUGE: Final = Workload("huge", QosClass.GUARANTEED, 64000)


def secretive_pod(workload: Workload) -> Pod:
    told = {"mine/token": SECRET}
    return msgspec.structs.replace(workload.pod, annotations=told, labels=told)


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
        told = []
        for number in range(2):
            running.process.send_signal(signal.SIGUSR1)
            line = await running.line("log.debug-toggled", number)
            told.append(line["on"])

    assert told == [True, False]


async def test_a_log_that_was_rotated_is_begun_anew(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE) as running:
        await running.place(OWN)
        await running.line("container.placed")
        running.log.rename(tmp_path / "log.1")
        await running.place(MANY)
        line = await running.line("container.placed")

    assert line["title"].endswith("/many/many")
    assert '"container.placed"' in (tmp_path / "log.1").read_text()


async def test_a_full_disk_stops_no_answer(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE, "--log-to", "/dev/full") as running:
        await running.place(OWN)

    assert OWN.container.id in running.runtime.world.containers


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
def test_a_log_that_cannot_be_is_refused_before_the_start(
    flags: tuple[str, ...], sentence: str
) -> None:
    done = nri_resmgr("run", *flags)

    assert (done.returncode, done.stderr) == (2, f"nri-resmgr: {sentence}\n")
