"""The daemon verifies what runs, from its first synchronization on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nri_resmgr.stub import Container, LinuxPod, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import asking_for
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.verification.cgroup_trees import MOUNT, V2, tree_with, v2
from tests.waiting import until

pytestmark = pytest.mark.process

MACHINE = parse_spec("1s2n4c1t")
OFTEN = ("--verify-interval", "1")
ROUND = "verification.round"
UPDATE = "UpdateContainers"
PATH = "kubepods.slice/cri-containerd-web.scope"


def write(root: Path, cpus: str) -> None:
    tree_with(root, V2 | v2(PATH, cpus, mems="1", weight="79"))


def methods(running: RunningDaemon) -> list[str]:
    return [one.method for one in running.runtime.records]


def verdicts(running: RunningDaemon) -> list[dict[str, int]]:
    return [one["verdicts"] for one in running.lines() if one["event"] == ROUND]


async def run_web(running: RunningDaemon) -> None:
    """Run a pod with a container of two CPUs."""
    linux = LinuxContainer(
        resources=asking_for(2), cgroups_path="kubepods.slice:cri-containerd:web"
    )
    parent = LinuxPod(cgroup_parent="/kubepods.slice")
    pod = Pod(id="web", name="web", namespace="shop", linux=parent)
    await running.runtime.run_pod(pod)
    await running.runtime.create_container(
        "web", Container(id="web", name="web", linux=linux)
    )


async def test_drift_is_reported_and_repaired_by_an_update_of_the_runtime(
    tmp_path: Path,
) -> None:
    host = tmp_path / "host"
    flags = (*OFTEN, "--apply-updates", "runtime")
    async with daemon(
        tmp_path, MACHINE, *flags, before=lambda root: write(root, "0-7")
    ) as running:
        await run_web(running)
        drifted = await running.line("container.drifted")
        await until(lambda: UPDATE in methods(running))
        write(host, "4-5")
        mended = await running.line("drift.cleared")

    assert drifted["why"] == (
        "shop/web/web may run on CPUs 0-7, but 4-5 was decided: another program wrote "
        f"/sys/fs/cgroup/{PATH}"
    )
    assert (drifted["level"], mended["level"]) == ("warning", "info")


async def test_drift_is_repaired_in_the_cgroup(tmp_path: Path) -> None:
    host = tmp_path / "host"
    file = host / MOUNT / PATH / "cpuset.cpus"
    async with daemon(
        tmp_path, MACHINE, *OFTEN, before=lambda root: write(root, "0-7")
    ) as running:
        await run_web(running)
        await running.line("container.drifted")
        await until(lambda: file.read_text() == "4-5\n")
        write(host, "4-5")
        await running.line("drift.cleared")

    assert UPDATE not in methods(running)


async def test_a_program_that_writes_all_the_time_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "host" / MOUNT / PATH / "cpuset.cpus"
    flags = (*OFTEN, "--log-debug", "app.verification")
    async with daemon(
        tmp_path, MACHINE, *flags, before=lambda root: write(root, "4-5")
    ) as running:
        await run_web(running)
        await running.runtime.start_container("web")
        while not any(one["event"] == "drift.contested" for one in running.lines()):
            file.write_text("0-7\n")
            await until(lambda: file.read_text() == "4-5\n")
        contested = await running.line("drift.contested")
        await until(lambda: {"contested": 1} in verdicts(running))

    assert contested["why"].startswith(
        "another program has written the cpuset of shop/web/web 5 times within ten "
        "minutes. From now on its CPUs are written again after 0.8 s each time"
    )


async def test_without_repairs_drift_is_only_reported(tmp_path: Path) -> None:
    flags = (*OFTEN, "--verify-repair", "no", "--log-debug", "app.verification")
    async with daemon(
        tmp_path, MACHINE, *flags, before=lambda root: write(root, "0-7")
    ) as running:
        await run_web(running)
        await running.line("container.drifted")
        for _ in range(2):
            seen = [line["event"] for line in running.lines()].count(ROUND)
            await running.line(ROUND, seen)

    assert UPDATE not in methods(running)
    assert len([x for x in running.lines() if x["event"] == "container.drifted"]) == 1


@pytest.mark.parametrize(
    ("flags", "events"),
    [
        pytest.param((), ["verification.off"], id="no cgroups: a warning says so"),
        pytest.param(("--verify-interval", "0"), [], id="turned off"),
        pytest.param(("--dry-run",), [], id="a dry run sends nothing"),
    ],
)
async def test_verification_can_be_disabled(
    tmp_path: Path, flags: tuple[str, ...], events: list[str]
) -> None:
    async with daemon(tmp_path, MACHINE, "--log-debug", "app.*", *flags) as running:
        # Begins later than the verification would.
        await running.line("configuration.in-force")
        await asyncio.sleep(0.2)
        lines = [line["event"] for line in running.lines()]

    assert [one for one in lines if one.startswith("verification")] == events
