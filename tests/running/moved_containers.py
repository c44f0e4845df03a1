"""A real daemon that has moved containers by their cgroups; the records stay."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.testing import Runtime
from tests.app.node import UNSAFE, asking_for, config
from tests.running.cgroup_world import CgroupWorld
from tests.running.container_cgroups import FolderCgroups
from tests.running.race_daemon import RaceDaemon
from tests.waiting import until

MACHINE: Final = "1s4n4c1t"
NAMES: Final = ("a", "b")
"""Containers that move."""
LARGE: Final = ("x", "y", "z")
"""Containers that leave before."""


@attrs.frozen(eq=False)
class KilledNode:
    """A real daemon that may be killed, and containers with cgroups of version 1.

    Attributes:
        cgroups: Their cgroups; there are no effective values apart from these.
    """

    runtime: Runtime
    daemon: RaceDaemon
    cgroups: FolderCgroups

    async def run(self, name: str, cpus: float) -> None:
        """Run a Guaranteed pod of one container."""
        await self.runtime.run_pod(Pod(id=f"pod-{name}", name=name, namespace="shop"))
        linux = LinuxContainer(
            resources=asking_for(cpus), cgroups_path=self.cgroups.path(name)
        )
        container = Container(id=name, name=name, linux=linux)
        await self.runtime.create_container(f"pod-{name}", container)
        await self.runtime.start_container(name)

    def places(self) -> dict[str, str]:
        """Return the CPUs in the cgroups of all containers."""
        living = self.runtime.world.containers
        return {name: str(self.cgroups.cpus(name)) for name in living}

    def recorded(self) -> dict[str, str]:
        """Return the CPUs in the runtime's record of all containers."""
        living = self.runtime.world.containers.items()
        return {name: one.linux.resources.cpu.cpus for name, one in living}

    async def decided(self) -> dict[str, str]:
        """Return the CPUs that the daemon has decided."""
        rows = await self.daemon.rows()
        return {name: str(one["cpus"]) for name, one in rows.items()}

    async def begin_again(self) -> None:
        """Kill the daemon, and start another one."""
        await self.daemon.kill()
        await self.daemon.start()


def last_sent(checkpoint: Path) -> dict[str, str]:
    """Return the CPUs of all containers in a checkpoint."""
    rows = map(json.loads, checkpoint.read_text().splitlines()[1:])
    return {key: pin["cpus"] for table, key, pin in rows if table == "last_sent"}


@asynccontextmanager
async def killed_node(folder: Path) -> AsyncIterator[KilledNode]:
    """Move two containers of a real daemon by their cgroups; the records stay."""
    cgroups = FolderCgroups(folder, MACHINE)
    (cgroups.root / "proc").mkdir(exist_ok=True)
    times = "".join(f"cpu{cpu} 1 0 0 9 0 0 0 0 0 0\n" for cpu in range(16))
    (cgroups.root / "proc/stat").write_text(times)
    runtime = Runtime(folder, UNSAFE)
    runtime.world = CgroupWorld(cgroups, random.Random(0))  # noqa: S311 - no lag
    document = config("{reservedResources: {cpu: 1}}")
    # Nothing but the start of the session has values written again.
    daemon = RaceDaemon(
        runtime, folder, cgroups.root, document, "--verify-interval", "0"
    )
    node = KilledNode(runtime, daemon, cgroups)
    async with runtime:
        try:
            await daemon.start()
            for name in LARGE:
                await node.run(name, 4)
            for name in NAMES:
                await node.run(name, 0.5)
            for name in LARGE:
                await runtime.stop_container(name)
                await runtime.remove_container(name)
            await daemon.post("/v1/rebalance")
            moved = await node.decided()
            assert moved != node.recorded()
            checkpoint = folder / "state" / CHECKPOINT_NAME
            await until(lambda: node.places() == last_sent(checkpoint) == moved)
            yield node
        finally:
            await daemon.kill()
