"""A daemon that is killed between two writes leaves nothing that lasts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.testing import Runtime
from nri_resmgr.values import CpuSet
from tests.app.node import SAFE
from tests.real_host.patience import patience
from tests.running.cgroup_world import CgroupWorld
from tests.running.container_cgroups import KernelCgroups
from tests.running.race_daemon import RaceDaemon
from tests.running.race_laws import RaceLaws
from tests.waiting import until

SHARED: Final = ("web", "log", "job", "bot")
OWN: Final = "db"

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.parametrize(
        "written",
        [
            1,
            # One for each test is enough for another kernel, with cgroup v2.
            pytest.param(2, marks=pytest.mark.machine),
            len(SHARED) - 1,
        ],
    ),
]

LONG: Final = 60.0  # seconds until the process has ended

# As of a policy that has one shared pool on machines of any size. Isolated CPUs are in
# no pool, so that no other container would have to leave them.
DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {reservedResources: {cpu: "cpuset:0"}, preferIsolatedCPUs: false}
"""

SHARING: Final = LinuxResources(cpu=LinuxCpu(102))
EXCLUSIVE: Final = LinuxResources(
    cpu=LinuxCpu(1024, 100_000, 100_000), memory=LinuxMemory(limit=64 << 20)
)


@attrs.frozen(eq=False)
class SeriesNode:
    """Containers in cgroups of this kernel, of which some share CPUs."""

    runtime: Runtime
    world: CgroupWorld
    cgroups: KernelCgroups
    daemon: RaceDaemon

    async def create(self, name: str, parent: str, resources: LinuxResources) -> None:
        """Create a container in a pod of its own."""
        linux = LinuxPod(cgroup_parent=parent)
        pod = Pod(id=f"pod-{name}", name=name, namespace="shop", linux=linux)
        await self.runtime.run_pod(pod)
        path = self.cgroups.path(name)
        inside = LinuxContainer(resources=resources, cgroups_path=path)
        container = Container(id=name, name=name, linux=inside)
        await self.runtime.create_container(pod.id, container)

    async def share(self) -> None:
        """Run the containers that share CPUs."""
        for name in SHARED:
            await self.create(name, f"/kubepods/burstable/pod{name}", SHARING)
            await self.runtime.start_container(name)

    async def create_own(self) -> CpuSet:
        """Create the container with exclusive CPUs, which the others leave then."""
        await self.create(OWN, f"/kubepods/pod{OWN}", EXCLUSIVE)
        return CpuSet.parse(self.world.recorded(OWN))

    async def quiet(self) -> None:
        """Wait until the daemon has nothing to write, and the runtime's record has all.

        A later series has the writes that the test counts, and no others.
        """
        await RaceLaws(self.world, self.daemon).record_follows()

    async def killed(self) -> None:
        """Wait until the daemon has killed itself."""
        await until(lambda: not self.daemon.is_running, patience(LONG))

    async def restart(self) -> None:
        """Start another daemon; all laws hold soon afterwards.

        Raises:
            AssertionError: One does not.
        """
        await self.daemon.kill()
        await self.daemon.start()
        await RaceLaws(self.world, self.daemon).settle()

    def shared(self) -> Mapping[str, CpuSet]:
        """Return the CPUs in force of the containers that share them."""
        living = self.world.living()
        return {name: living[name] for name in SHARED}

    def number_on(self, cpus: CpuSet) -> int:
        """Return how many containers that share CPUs may run on some of these."""
        return sum(bool(one & cpus) for one in self.shared().values())


@asynccontextmanager
async def series_node(folder: Path) -> AsyncIterator[SeriesNode]:
    """Run a daemon, and containers that share CPUs; skip where there are no cgroups."""
    try:
        cgroups = KernelCgroups()
    except OSError as reason:
        pytest.skip(f"no cgroup can be made: {reason}")
    runtime = Runtime(folder, SAFE)
    runtime.world = world = CgroupWorld(cgroups, random.Random(0))  # noqa: S311 - no lag
    # Only the start is to write again, and no verification.
    daemon = RaceDaemon(
        runtime, folder, cgroups.root, DOCUMENT, "--verify-interval", "0"
    )
    async with runtime:
        try:
            if len(cgroups.machine.online) == 1:
                pytest.skip("one CPU cannot be divided")
            await daemon.start()
            node = SeriesNode(runtime, world, cgroups, daemon)
            await node.share()
            yield node
        finally:
            await daemon.kill()
            cgroups.close()


async def test_the_others_leave_exclusive_cpus_after_a_restart(
    tmp_path: Path, written: int
) -> None:
    async with series_node(tmp_path) as node:
        await node.quiet()
        node.daemon.kill_after(written)
        own = await node.create_own()
        await node.killed()
        before = node.number_on(own)
        await node.runtime.start_container(OWN)
        await node.restart()
        after = node.number_on(own)

    assert (before, after) == (len(SHARED) - written, 0)


async def test_the_others_return_if_the_creation_has_failed_meanwhile(
    tmp_path: Path, written: int
) -> None:
    """The runtime's record has always had the CPUs that some have left."""
    async with series_node(tmp_path) as node:
        await node.quiet()
        wide = node.shared()
        node.daemon.kill_after(written)
        own = await node.create_own()
        await node.killed()
        before = node.number_on(own)
        await node.runtime.remove_container(OWN)
        await node.restart()
        after = node.shared()

    assert before == len(SHARED) - written
    assert after == wide


async def test_the_others_grow_after_a_stop_and_a_restart(
    tmp_path: Path, written: int
) -> None:
    async with series_node(tmp_path) as node:
        wide = node.shared()
        own = await node.create_own()
        await node.runtime.start_container(OWN)
        await node.quiet()
        node.daemon.kill_after(written)
        await node.runtime.stop_container(OWN)
        await node.killed()
        before = node.number_on(own)
        await node.restart()
        after = node.shared()

    assert before == written
    assert after == wide
