"""Which way updates of running containers take where cgroups are mounted read-only."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.host.read_only_mount import read_only
from tests.verification.cgroup_trees import MOUNT, V1, V2, tree_with

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("1s1n4c1t")
SHARED: Final = Workload("shared", QosClass.BURSTABLE, 500)
EXCLUSIVE: Final = Workload("exclusive", QosClass.GUARANTEED, 2000)
READ_ONLY: Final = "read-only file system (mount the host's /sys/fs/cgroup writable)"
INSTEAD: Final = "--apply-updates=runtime needs no write access to cgroups"
PROCS: Final = "/sys/fs/cgroup/cgroup.procs"
TREES: Final = pytest.mark.parametrize(
    ("files", "procs"),
    [
        pytest.param(V2, PROCS, id="version 2"),
        pytest.param(V1, "/sys/fs/cgroup/cpuset/cgroup.procs", id="version 1"),
    ],
)


def cpus_of(running: RunningDaemon, workload: Workload) -> CpuSet:
    """Return the CPUs in the runtime's record of a container."""
    resources = running.runtime.container(workload.container.id).resources
    return CpuSet.parse(resources.cpu.cpus if resources.cpu else "")


@TREES
async def test_auto_logs_once_why_the_runtime_applies_updates(
    files: dict[str, str], procs: str, tmp_path: Path
) -> None:
    control = str(tmp_path / "control.sock")
    with ExitStack() as mounts:

        def mount(root: Path) -> None:
            tree_with(root, files)
            mounts.enter_context(read_only(root / MOUNT))

        async with daemon(
            tmp_path, MACHINE, "--control-socket", control, before=mount
        ) as running:
            await running.place(SHARED)
            before = cpus_of(running, SHARED)
            await running.place(EXCLUSIVE)
            after, exclusive = (cpus_of(running, one) for one in (SHARED, EXCLUSIVE))
            await running.line("control.listening")
            environment = {"NRI_RESMGR_CONTROL_SOCKET": control}
            status = await asyncio.to_thread(nri_resmgr, "status", env=environment)

    (line,) = [one for one in running.lines() if one["event"] == "pins.by-runtime"]
    why = f"cannot write {procs}: {READ_ONLY}"
    assert (line["level"], line["why"]) == ("warning", f"{why}; {INSTEAD}")
    assert f"updates        by the runtime: {why}" in status.stdout.splitlines()
    # The reply to the creation had the update.
    assert after == before - exclusive


@TREES
async def test_cgroup_does_not_start_on_read_only_cgroups_and_names_the_remedy(
    files: dict[str, str], procs: str, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    write_tree(sysfs_files(MACHINE), host)
    tree_with(host, files)
    flags = ("--apply-updates", "cgroup", "--host-root", host)
    with read_only(host / MOUNT):
        ended = await asyncio.to_thread(nri_resmgr, "run", *flags)

    why = f"cannot write {procs}: {READ_ONLY}; {INSTEAD}"
    assert ended.stderr.splitlines()[-1] == f"nri-resmgr: {why}"
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 1


def test_cgroup_does_not_start_for_another_user_than_root(tmp_path: Path) -> None:
    write_tree(sysfs_files(MACHINE), tmp_path)
    tree_with(tmp_path, V2)
    (tmp_path / MOUNT / "cgroup.procs").chmod(0o444)
    ended = nri_resmgr(
        "run", "--apply-updates", "cgroup", "--host-root", tmp_path, weak=True
    )

    why = "permission denied (run as root with write access to the host's cgroups)"
    assert ended.stderr.splitlines()[-1] == (
        f"nri-resmgr: cannot write {PROCS}: {why}; {INSTEAD}"
    )
    assert ended.returncode == 1


def test_cgroup_does_not_start_where_cgroups_are_not_mounted(tmp_path: Path) -> None:
    write_tree(sysfs_files(MACHINE), tmp_path)
    ended = nri_resmgr("run", "--apply-updates", "cgroup", "--host-root", tmp_path)

    assert ended.stderr.splitlines()[-1].endswith(
        f"(mount the host's /sys/fs/cgroup); {INSTEAD}"
    )
    assert ended.returncode == 1
