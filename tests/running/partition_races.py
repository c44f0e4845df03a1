"""Random events on containers with partitions, several at a time, and kills."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from random import Random
from typing import Final

from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.testing import Runtime, RuntimeRefusal
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.app.node import asking_for, config
from tests.host.partition_kernel import TOP
from tests.real_host.patience import patience
from tests.running.partition_laws import PartitionLaws
from tests.running.partition_node import (
    BY_PARTITION,
    PartitionNode,
    partition_plugin,
)
from tests.running.race_laws import SETTLED
from tests.running.shared_kernel import LifeJournal, LifeTree, SharedKernel
from tests.waiting import until

_EVENTS: Final = 25  # of a daemon that is not killed before
_AT_ONCE: Final = 3
_LIVING: Final = 8  # containers

CPUS: Final = CpuSet.parse("0-7")
"""Of the machine."""

# Nothing is to wait for the comparison that follows a write.
_TIMES: Final = DeliveryTimes(check_after=600.0)


class PartitionRaces:
    """A node with requests, exits, foreign partitions and kills at the same time.

    Attributes:
        cuts: Daemons that were killed between two writes.
        starts: Exclusive containers that were alone on their CPUs at their start.
        partitions: Those of them that had a partition then.
        intruders: Cgroups beside a partition, which was replaced by cpusets meanwhile.
    """

    def __init__(
        self, runtime: Runtime, kernel: SharedKernel, state: StateDir, draw: Random
    ) -> None:
        self.cuts = self.starts = self.partitions = self.intruders = 0
        self._runtime = runtime
        self._state = state
        self._kernel = kernel
        self._draw = draw
        self._numbers = itertools.count()
        self._pods: dict[str, str] = {}
        self._running: set[str] = set()
        self._left = 0
        # CPUs that another program has, and those that it has had in this life.
        self._foreign = self._taken = NO_CPUS

    async def live(self, *, is_killed: bool) -> None:
        """Run one daemon, beside events; with *is_killed* it ends between two writes.

        Raises:
            AssertionError: A law does not hold.
        """
        life = LifeTree(self._kernel)
        journal = LifeJournal(self._state, life)
        async with partition_plugin(
            self._runtime, life, config(BY_PARTITION), journal=journal, times=_TIMES
        ) as (plugin, delivery):
            node = PartitionNode(
                self._runtime, plugin, delivery, self._kernel, self._pods
            )
            laws = PartitionLaws(node, self._kernel, self._running)
            self._taken = self._foreign
            await self._settled(laws)  # whatever the last one has left
            self._left = _EVENTS
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(self._act(laws, life))
                if is_killed:
                    await asyncio.sleep(0.05 * self._draw.random())
                    life.left = self._draw.randrange(1, 6)
            if life.killed.is_set():
                self.cuts += 1
            else:
                life.left = None
                await self._settled(laws)
                await self._intrude(laws)
            life.left = 0  # a thread of a daemon that has ended writes nothing

    async def end_all(self) -> None:
        """End all containers while no daemon runs."""
        while self._running:
            name = self._running.pop()
            path = self._runtime.world.containers[name].linux.cgroups_path
            self._kernel.remove(path.lstrip("/"))
            await self._runtime.stop_container(name)
            del self._pods[name]

    # Events.

    async def _act(self, laws: PartitionLaws, life: LifeTree) -> None:
        while not life.killed.is_set() and self._left > 0:
            self._left -= 1
            match self._draw.randrange(8):
                case 0 | 1 | 2 if len(laws.node.pods) < _LIVING:
                    await self._arrive(laws, life)
                case 5 | 6:
                    await self._resize(laws.node)
                case 7:
                    self._take()
                case _:
                    await self._depart(laws.node)
            await asyncio.sleep(0.005 * self._draw.random())

    async def _arrive(self, laws: PartitionLaws, life: LifeTree) -> None:
        node, name = laws.node, f"c{next(self._numbers)}"
        pod = ""  # of its own
        if self._running and self._draw.random() < 0.3:
            pod = node.pods[self._draw.choice(sorted(self._running))]
        try:
            await node.create(name, self._draw.choice([0.2, 0.5, 1, 2]), pod)
        except RuntimeRefusal:
            return
        await asyncio.sleep(0.005 * self._draw.random())
        await node.start(name)
        self._running.add(name)
        # Once it is killed, the next one has to see to it.
        if not life.killed.is_set() and (own := laws.exclusive().get(name)):
            assert laws.together(name) == {}
            self.starts += 1
            if not own & self._taken:
                assert laws.has_partition(name)
                self.partitions += 1

    async def _depart(self, node: PartitionNode) -> None:
        if not self._running:
            return
        name = self._draw.choice(sorted(self._running))
        self._running.remove(name)
        if self._draw.random() < 0.5:
            await node.stop(name)
        else:  # its processes end, and the runtime reports it later
            self._kernel.remove(node.folder(name))
            await asyncio.sleep(0.01 * self._draw.random())
            await self._runtime.stop_container(name)
            del node.pods[name]

    async def _resize(self, node: PartitionNode) -> None:
        if self._running:
            name = self._draw.choice(sorted(self._running))
            self._kernel.kept.pop(node.folder(name), None)
            size = self._draw.choice([0.2, 0.5, 1, 2])
            # It may be stopped meanwhile.
            with suppress(RuntimeRefusal, KeyError):
                await self._runtime.update_container(name, asking_for(size))

    def _take(self) -> None:
        """Have another program keep CPUs for itself, unless a partition has them."""
        text = self._draw.choice(["", "3", "1-2"])
        with suppress(OSError):
            self._kernel.write(f"{TOP}/system.slice/cpuset.cpus.exclusive", text)
            self._foreign = CpuSet.parse(text)
            self._taken |= self._foreign

    async def _intrude(self, laws: PartitionLaws) -> None:
        """Put a cgroup beside a partition, which is invalid then.

        It goes again; the next daemon makes the partition.
        """
        node, exclusive = laws.node, laws.exclusive()
        found = [name for name in sorted(exclusive) if laws.has_partition(name)]
        if not found:
            return
        pod = node.pods[self._draw.choice(found)]
        beside = [name for name in exclusive if node.pods[name] == pod]
        for name in beside:
            self._kernel.kept.pop(node.folder(name), None)
        intruder = f"{node.pod_folder(pod)}/intruder"
        self._kernel.make(intruder)
        self._kernel.write(f"{TOP}/{intruder}/cpuset.cpus", str(CPUS))
        node.partitions.demand()  # as the kernel's notification does
        node.delivery.send(())
        await self._settled(laws, CpuSet.union(exclusive[name] for name in beside))
        self.intruders += 1
        self._kernel.remove(intruder)

    async def _settled(self, laws: PartitionLaws, intruded: CpuSet = NO_CPUS) -> None:
        """Wait until all laws hold, which they do soon after the last event.

        Raises:
            AssertionError: One does not.
        """

        def broken() -> dict[str, object]:
            return laws.broken(self._foreign, self._taken | intruded)

        with suppress(TimeoutError):
            await until(lambda: not broken(), patience(SETTLED))
        wrong = broken()
        assert not wrong, wrong
        laws.keep()
