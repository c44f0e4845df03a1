"""A kubelet that restarts with a static CPU manager, and assigns CPUs of its own."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from nri_resmgr.app.background.repairs import MOST_ATTEMPTS
from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import Runtime
from nri_resmgr.values import CpuSet
from tests.app.node import config
from tests.real_host.patience import patience
from tests.running.cgroup_world import CgroupWorld
from tests.running.container_cgroups import FolderCgroups
from tests.running.race_daemon import RaceDaemon
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

LONG: Final = 60.0  # seconds; it only guards against hangs
SHARED: Final = 20
GUARANTEED: Final = LinuxResources(
    cpu=LinuxCpu(2048, 200_000, 100_000), memory=LinuxMemory(limit=64 << 20)
)
BURSTABLE: Final = LinuxResources(cpu=LinuxCpu(51))

# None of them are the CPUs that the daemon decides.
ASSIGNED: Final = {"own-0": "1-2", "own-1": "3-4"}
DEFAULT: Final = "0,5-15"
DOCUMENT: Final = config('{reservedResources: {cpu: "cpuset:0"}}')


@attrs.define(eq=False)
class Node:
    """A daemon, and running containers that have what it has decided."""

    runtime: Runtime
    cgroups: FolderCgroups
    daemon: RaceDaemon
    wanted: Mapping[str, CpuSet] = attrs.field(factory=dict)

    async def run(self, name: str, resources: LinuxResources, folder: str) -> None:
        """Run a pod of one container, as a kubelet does."""
        parent = LinuxPod(cgroup_parent=f"/kubepods{folder}/pod{name}")
        pod = Pod(id=f"pod-{name}", name=name, namespace="shop", linux=parent)
        await self.runtime.run_pod(pod)
        linux = LinuxContainer(
            resources=resources, cgroups_path=self.cgroups.path(name)
        )
        labels = {KUBELET_NAME: name}
        container = Container(id=name, name=name, labels=labels, linux=linux)
        await self.runtime.create_container(pod.id, container)
        await self.runtime.start_container(name)

    async def decided(self) -> Mapping[str, CpuSet]:
        """Return the CPUs that the daemon has decided."""
        rows = await self.daemon.rows()
        return {name: CpuSet.parse(row["cpus"]) for name, row in rows.items()}

    async def in_force(self) -> None:
        """Wait until each container has the CPUs of the beginning again."""
        await until(lambda: self.present() == self.wanted, patience(LONG))

    def present(self) -> Mapping[str, CpuSet | None]:
        """Return the CPUs in the cgroups."""
        return {name: self.cgroups.cpus(name) for name in self.wanted}

    async def rewritten(self) -> int:
        """Return the number of values written after other programs' writes.

        The weight is among them that each cgroup here has at first.
        """
        state = await self.daemon.get("/v1/state")
        count: int = state["applyUpdates"]["writes"]["rewritten"]
        return count

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return lines of the log."""
        text = self.daemon.log.read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [one for one in map(json.loads, whole) if one["event"] == event]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Node]:
    """Run exclusive and shared containers until nothing is compared any more."""
    cgroups = FolderCgroups(folder, "2s2n4c1t memory=64Gi")
    runtime = Runtime(folder)
    runtime.world = CgroupWorld(cgroups, random.Random(0))  # noqa: S311 - delays, repeatable
    # Nothing is to wait for a round.
    flags = ("--verify-interval", "3600")
    daemon = RaceDaemon(runtime, folder, cgroups.root, DOCUMENT, *flags)
    async with runtime:
        try:
            await daemon.start()
            node = Node(runtime, cgroups, daemon)
            for name in ASSIGNED:
                await node.run(name, GUARANTEED, "")
            for number in range(SHARED):
                await node.run(f"shared-{number}", BURSTABLE, "/burstable")
            node.wanted = await node.decided()
            await node.in_force()
            await asyncio.sleep(2.5)
            yield node
        finally:
            await daemon.kill()


def write_files(node: Node) -> None:
    """Write the cpuset of each container, as a manager of an old kubelet does."""
    for name in node.wanted:
        node.cgroups.write(name, ASSIGNED.get(name, DEFAULT), "")


async def update_all(node: Node) -> None:
    """Update the CPUs of each container, and nothing else of it.

    Source:
        Kubernetes, pkg/kubelet/cm/cpumanager/cpu_manager.go, `updateContainerCPUSet`:
        a kubelet that has restarted does so for all containers within its first round.
    """
    for name in node.wanted:
        cpus = ASSIGNED.get(name, DEFAULT)
        resources = LinuxResources(cpu=LinuxCpu(cpus=cpus))
        await node.runtime.update_container(name, resources)


async def test_cpus_that_it_requests_are_decided_here(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        before = await node.rewritten()
        await update_all(node)
        after, decided = node.present(), await node.decided()
        await asyncio.sleep(0.5)  # until all are compared

        assert after == decided == node.wanted
        assert await node.rewritten() == before
        assert node.events("container.drifted") == []


async def test_cpus_that_it_writes_are_written_again_each_time(tmp_path: Path) -> None:
    async with running(tmp_path) as node:
        count, before = len(node.wanted), await node.rewritten()
        write_files(node)
        await node.in_force()
        await until(lambda: len(node.events("container.drifted")) == count, LONG)
        once = await node.rewritten() - before
        contested = len(node.events("drift.contested"))
        for _ in range(1, MOST_ATTEMPTS):
            write_files(node)
            await node.in_force()
        await until(lambda: len(node.events("drift.contested")) == count, LONG)
        write_files(node)
        await node.in_force()

        drifted = {one["container"] for one in node.events("container.drifted")}
        assert (once, contested) == (count, 0)
        assert drifted == node.wanted.keys()
        assert node.events("drift.abandoned") == []
        assert await node.decided() == node.wanted
