"""Decisions that no request asked for are in force at once, also on old runtimes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from nri_proto import NriLevel
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.stub import Container, LinuxCpu, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import Runtime
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet
from tests.app.node import config
from tests.daemon.daemon_process import IDENTITY
from tests.real_host.patience import patience
from tests.running.cgroup_world import CgroupWorld
from tests.running.container_cgroups import (
    ContainerCgroups,
    FolderCgroups,
    KernelCgroups,
    with_own_cgroups,
)
from tests.running.race_daemon import RaceDaemon
from tests.waiting import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # Calls of UpdateContainers are not safe on either.
    pytest.mark.parametrize("level", [NriLevel(0, 6), NriLevel(0, 8)], ids=str),
]

AT_ONCE: Final = 1.0
"""Seconds from a decision until it is in force."""

LONG: Final = 60.0  # seconds until there is a decision

PLAIN: Final = "1s1n8c1t memory=64Gi"
CPUS: Final = len(os.sched_getaffinity(0))
OWN: Final = f"1s1n{CPUS}c1t memory=64Gi"
"""As many CPUs as there are here; cgroups of the kernel have no others."""


def cold(seconds: float) -> Mapping[str, str]:
    """Return the annotations of a pod that gets no DRAM at first."""
    return {
        "cold-start.resource-policy.nri.io/pod": f"duration: {seconds:g}s",
        "memory-type.resource-policy.nri.io/pod": "dram,pmem",
    }


@attrs.define(eq=False)
class UnaskedNode:
    """One running container, and a daemon; nothing else happens."""

    runtime: Runtime
    cgroups: ContainerCgroups
    daemon: RaceDaemon
    calls: int = 0

    async def run(self, annotations: Mapping[str, str] = {}) -> None:
        """Run a Burstable container; requests end here."""
        linux = LinuxPod(cgroup_parent="/kubepods/burstable/podweb")
        pod = Pod(
            id="pod", name="web", namespace="shop", annotations=annotations, linux=linux
        )
        await self.runtime.run_pod(pod)
        resources = LinuxResources(cpu=LinuxCpu(102))
        path = self.cgroups.path("web")
        inside = LinuxContainer(resources=resources, cgroups_path=path)
        container = Container(id="web", name="web", linux=inside)
        await self.runtime.create_container("pod", container)
        await self.runtime.start_container("web")
        self.calls = len(self.runtime.calls_to(IDENTITY))

    async def decided(self) -> tuple[str, str]:
        """Return the CPUs and memory nodes that the daemon has decided."""
        row = (await self.daemon.rows())["web"]
        return row["cpus"], row["mems"]

    async def decided_again(self, before: tuple[str, str]) -> None:
        """Wait for another decision than *before*."""
        async with asyncio.timeout(patience(LONG)):
            while await self.decided() == before:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)

    async def in_force(self) -> None:
        """Wait until the decision is in force; no request has come since `run`."""
        cpus, mems = await self.decided()
        await until(
            lambda: (
                self.cgroups.cpus("web") == CpuSet.parse(cpus)
                and self.cgroups.mems("web") == mems
            ),
            patience(AT_ONCE),
        )

        assert len(self.runtime.calls_to(IDENTITY)) == self.calls

    def configure(self, reserved: str) -> None:
        """Change the configuration file."""
        new = self.daemon.config.with_suffix(".new")
        new.write_text(document(reserved))
        new.replace(self.daemon.config)

    async def logged(self, event: str) -> None:
        """Wait for a line of the daemon's log."""
        await until(
            lambda: any(one["event"] == event for one in self._lines()), patience(LONG)
        )

    def _lines(self) -> list[dict[str, Any]]:
        text = self.daemon.log.read_text()
        return [json.loads(one) for one in text[: text.rfind("\n") + 1].splitlines()]


def document(reserved: str) -> str:
    return config(f'{{reservedResources: {{cpu: "cpuset:{reserved}"}}}}')


@asynccontextmanager
async def running(
    folder: Path, cgroups: ContainerCgroups, level: NriLevel
) -> AsyncIterator[UnaskedNode]:
    runtime = Runtime(folder, level)
    runtime.world = CgroupWorld(cgroups, random.Random(0))  # noqa: S311 - not used
    text = document("0")
    daemon = RaceDaemon(runtime, folder, cgroups.root, text, "--verify-interval", "1")
    async with runtime:
        try:
            await daemon.start()
            yield UnaskedNode(runtime, cgroups, daemon)
        finally:
            await daemon.kill()
            cgroups.close()


def kernel(root: Path = Path("/")) -> KernelCgroups:
    try:
        cgroups = KernelCgroups(root)
    except OSError as reason:
        pytest.skip(f"no cgroup can be made: {reason}")
    # Not those of this process, which has one CPU in the emulated machine.
    if len(cgroups.machine.present) == 1:
        cgroups.close()
        pytest.skip("one CPU cannot be divided")
    return cgroups


def become(spec: str, cgroups: ContainerCgroups, new: Path) -> None:
    """Have CPUs come and go."""
    write_tree(sysfs_files(parse_spec(spec)), new)
    shutil.copytree(new, cgroups.root, symlinks=True, dirs_exist_ok=True)


@pytest.mark.machine
async def test_a_reload(tmp_path: Path, level: NriLevel) -> None:
    async with running(tmp_path, kernel(), level) as node:
        await node.run()
        before = await node.decided()
        node.configure("1")
        # It is answered when nothing waits, or after some seconds.
        reloading = asyncio.create_task(node.daemon.post("/v1/reload"))
        await node.decided_again(before)
        await node.in_force()
        await reloading


@pytest.mark.machine
async def test_a_repair_of_drift(tmp_path: Path, level: NriLevel) -> None:
    async with running(tmp_path, kernel(), level) as node:
        await node.run()
        await asyncio.sleep(2.5)  # until its own writes are compared no more
        node.cgroups.write("web", "0", "")
        await node.in_force()
        # Once it is repaired, because the write was noticed at once.
        await node.logged("container.drifted")


async def test_a_cpu_that_comes_and_goes_is_in_the_kernel_s_cgroup(
    tmp_path: Path, level: NriLevel
) -> None:
    last = CPUS - 1
    if os.sched_getaffinity(0) != set(range(CPUS)):
        pytest.skip("CPUs of this machine are left out")
    cgroups = kernel(with_own_cgroups(tmp_path / "host", f"{OWN} offline={last}"))
    found = []
    async with running(tmp_path, cgroups, level) as node:
        await node.run()
        for step, spec in enumerate((OWN, f"{OWN} offline={last}")):
            before = await node.decided()
            become(spec, cgroups, tmp_path / f"new{step}")
            await node.decided_again(before)
            await node.in_force()
            found.append(cgroups.cpus("web"))

    with_last, without = found
    assert with_last is not None
    assert without is not None
    assert last in with_last
    assert last not in without


async def test_a_cpu_that_comes_online(tmp_path: Path, level: NriLevel) -> None:
    cgroups = FolderCgroups(tmp_path, f"{PLAIN} offline=7")
    async with running(tmp_path, cgroups, level) as node:
        await node.run()
        before = await node.decided()
        become(PLAIN, cgroups, tmp_path / "new")
        await node.decided_again(before)
        await node.in_force()


async def test_a_cpu_that_goes_offline(tmp_path: Path, level: NriLevel) -> None:
    cgroups = FolderCgroups(tmp_path, PLAIN)
    async with running(tmp_path, cgroups, level) as node:
        await node.run()
        before = await node.decided()
        become(f"{PLAIN} offline=7", cgroups, tmp_path / "new")
        await node.decided_again(before)
        await node.in_force()
        found = before[0], cgroups.cpus("web")

    assert found == ("1-7", CpuSet.parse("1-6"))


async def test_the_end_of_a_cold_start(tmp_path: Path, level: NriLevel) -> None:
    cgroups = FolderCgroups(tmp_path, "1s1n4c1t pmem=16G")
    async with running(tmp_path, cgroups, level) as node:
        await node.run(cold(1))
        before = await node.decided()
        await node.decided_again(before)
        await node.in_force()


@pytest.mark.numa
async def test_memory_after_a_cold_start_is_in_the_kernel_s_cgroup(
    tmp_path: Path, level: NriLevel
) -> None:
    cgroups = kernel()
    slow = NodeSet.of(*(one.id for one in cgroups.machine.nodes if not one.cpus))
    if not slow:
        cgroups.close()
        pytest.skip("no node without CPUs; runs in the emulated machine")
    async with running(tmp_path, cgroups, level) as node:
        # It must not be over before it has been looked at.
        await node.run(cold(patience(2)))
        before = await node.decided()
        at_first = cgroups.mems("web")
        await node.decided_again(before)
        await node.in_force()
        at_last = cgroups.mems("web")

    assert NodeSet.parse(at_first) == slow
    assert NodeSet.parse(at_last) > slow
