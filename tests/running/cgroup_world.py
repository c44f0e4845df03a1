"""Pods and containers of the test runtime whose cgroups follow, as a real one's do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

import attrs

from nri_proto import nri_pb2
from nri_resmgr.testing.world import World
from nri_resmgr.values import CpuSet
from tests.running.container_cgroups import ContainerCgroups


@attrs.frozen
class StartSight:
    """CPUs in force at the answer to StartContainer.

    Attributes:
        container: The container that may run from now on.
        cpus: By container, of all others that run.
        foreign: Those that something else than the daemon has written lately.
        changes: Number of changes of the container's record so far.
    """

    container: str
    cpus: Mapping[str, CpuSet]
    foreign: frozenset[str]
    changes: int


class CgroupWorld(World):
    """A world that makes, updates and removes cgroups.

    Attributes:
        lag: Seconds at most between an update and its write to the cgroup.
        foreign: Containers with writes that are not the daemon's, since `foreign`
            was cleared.
        writes: Number of those that are on their way.
        starts: What the last starts of containers saw.
        on_created: Called at each answer to CreateContainer.
    """

    def __init__(self, cgroups: ContainerCgroups, choose: random.Random) -> None:
        super().__init__()
        self.lag = 0.0
        self.foreign: set[str] = set()
        self.writes = 0
        self.starts: dict[str, StartSight] = {}
        self.changes: dict[str, int] = {}
        self.on_created: Callable[[str], object] = lambda _: None
        self._cgroups = cgroups
        self._choose = choose
        self._busy_until: dict[str, float] = {}

    def living(self) -> dict[str, CpuSet]:
        """Return the CPUs in force of all containers that run."""
        return {
            key: cpus
            for key, one in self.containers.items()
            if one.state == nri_pb2.CONTAINER_RUNNING
            and (cpus := self._cgroups.cpus(key)) is not None
        }

    def recorded(self, container_id: str) -> str:
        """Return the CPUs in the runtime's own record of a container."""
        return self.containers[container_id].linux.resources.cpu.cpus

    def created(self, container: nri_pb2.Container) -> None:
        """See `World.created`."""
        super().created(container)
        self.on_created(container.id)

    def starting(self, container: nri_pb2.Container) -> None:
        """Make its cgroup, with the values of its record."""
        super().starting(container)
        cpu = container.linux.resources.cpu
        self._cgroups.make(container.id, cpu.cpus, cpu.mems)

    def started(self, container: nri_pb2.Container) -> None:
        """See `World.started`; called at the answer to StartContainer."""
        key, others = container.id, self.living()
        self.starts[key] = StartSight(
            key, others, frozenset(self.foreign), self.changes.get(key, 0)
        )
        super().started(container)

    def stopped(self, container: nri_pb2.Container) -> None:
        """See `World.stopped`."""
        super().stopped(container)
        self._cgroups.end(container.id)
        for known in (self.changes, self.starts, self._busy_until):
            known.pop(container.id, None)
        self.foreign.discard(container.id)

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """Update the record now, and the cgroup of a running container soon."""
        super().update(container_id, changes, all_fields=all_fields)
        container = self.containers.get(container_id)
        if container is None or container.state != nri_pb2.CONTAINER_RUNNING:
            return
        self.changes[container_id] = self.changes.get(container_id, 0) + 1
        # A runtime writes all values of its record.
        cpu = container.linux.resources.cpu
        values = container_id, cpu.cpus, cpu.mems
        if not self.lag:
            self._cgroups.write(*values)
            return
        # One update of a container after the other.
        loop, key = asyncio.get_running_loop(), container_id
        due = loop.time() + self.lag * self._choose.random()
        due = self._busy_until[key] = max(due, self._busy_until.get(key, 0.0))
        self.foreign.add(key)
        self.writes += 1
        loop.call_at(due, self._write, *values)

    def overwrite(self, container_id: str, cpus: str) -> None:
        """Write CPUs as another program does that knows of no runtime."""
        self.foreign.add(container_id)
        self._cgroups.write(container_id, cpus, "")

    def _write(self, container_id: str, cpus: str, mems: str) -> None:
        self.writes -= 1
        self._cgroups.write(container_id, cpus, mems)
