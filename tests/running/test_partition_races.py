"""Containers with partitions keep their CPUs whatever happens at the same time."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import attrs
import pytest

from nri_proto import nri_pb2
from nri_resmgr.host.cgroups.partitions import Added, PartitionJournal
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.testing import Runtime, RuntimeRefusal
from nri_resmgr.testing.world import World
from nri_resmgr.values import CpuSet
from tests.app.node import SAFE, asking_for, config
from tests.host.partition_kernel import TOP, PartitionKernel
from tests.real_host.patience import patience
from tests.running.partition_node import (
    BY_PARTITION,
    PartitionNode,
    partition_plugin,
)
from tests.running.race_laws import SETTLED
from tests.waiting import until

pytestmark = pytest.mark.slow

LIVES: Final = 6  # of daemons, one after the other
EVENTS: Final = 25  # of a daemon that is not killed before
AT_ONCE: Final = 3
LIVING: Final = 8  # containers


class SharedKernel(PartitionKernel):
    """A kernel for several threads."""

    def __init__(self, cpus: CpuSet, folders: Iterable[str]) -> None:
        self.lock = threading.RLock()
        super().__init__(cpus, folders)

    def make(self, folder: str) -> None:
        """See `PartitionKernel.make`."""
        with self.lock:
            super().make(folder)

    def remove(self, folder: str) -> None:
        """See `PartitionKernel.remove`."""
        with self.lock:
            super().remove(folder)

    def effective(self, folder: str) -> CpuSet:
        """See `PartitionKernel.effective`."""
        with self.lock:
            return super().effective(folder)

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        with self.lock:
            return super().read(path)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        with self.lock:
            return super().names(path)

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        with self.lock:
            super().write(path, text)


class Killed(Exception):
    """The daemon was killed before this write."""


@attrs.define(eq=False)
class LifeTree:
    """The files of a kernel for one daemon, which may be killed between two writes.

    Attributes:
        left: Writes until it is killed; None while it is not to be.
        killed: Set when it is.
    """

    kernel: SharedKernel
    left: int | None = None
    killed: threading.Event = attrs.field(factory=threading.Event)
    root: str = ""

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        return self.kernel.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        return self.kernel.names(path)

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        return self.kernel.target(path)

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        with self.kernel.lock:
            if self.left == 0:
                self.killed.set()
                raise Killed
            if self.left is not None:
                self.left -= 1
            self.kernel.write(path, text)


class LifeJournal(PartitionJournal):
    """What a daemon has added to cgroups; the next one reads it."""

    def __init__(self, state: StateDir, life: LifeTree) -> None:
        super().__init__(state, "boot")
        self._life = life

    def write(self, originals: dict[str, Added]) -> None:
        """See `BootJournal.write`."""
        if not self._life.killed.is_set():
            super().write(originals)


class PartitionWorld(World):
    """A world that writes cgroups with the values of its updates, as a runtime does."""

    def __init__(self, kernel: SharedKernel) -> None:
        super().__init__()
        self._kernel = kernel

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """See `World.update`."""
        super().update(container_id, changes, all_fields=all_fields)
        if container := self.containers.get(container_id):
            path = f"{TOP}{container.linux.cgroups_path}/cpuset.cpus"
            with suppress(FileNotFoundError):
                self._kernel.write(path, container.linux.resources.cpu.cpus)


class PartitionRaces:
    """A node with requests, exits, foreign partitions and kills at the same time.

    Attributes:
        cuts: Daemons that were killed between two writes.
        starts: Exclusive containers that were alone on their CPUs at their start.
    """

    def __init__(
        self, runtime: Runtime, kernel: SharedKernel, state: StateDir, draw: Random
    ) -> None:
        self.cuts = self.starts = 0
        self._runtime = runtime
        self._state = state
        self._kernel = kernel
        self._draw = draw
        self._numbers = itertools.count()
        self._pods: dict[str, str] = {}
        self._running: set[str] = set()
        self._left = 0

    async def live(self, *, is_killed: bool) -> None:
        """Run one daemon, beside events; with *is_killed* it ends between two writes.

        Raises:
            AssertionError: A law does not hold.
        """
        life = LifeTree(self._kernel)
        journal = LifeJournal(self._state, life)
        async with partition_plugin(
            self._runtime, life, config(BY_PARTITION), journal=journal
        ) as (plugin, delivery):
            node = PartitionNode(
                self._runtime, plugin, delivery, self._kernel, self._pods
            )
            await self._settled(node)  # whatever the last one has left
            self._left = EVENTS
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._act(node, life))
                if is_killed:
                    await asyncio.sleep(0.05 * self._draw.random())
                    life.left = self._draw.randrange(1, 6)
            if life.killed.is_set():
                self.cuts += 1
            else:
                life.left = None
                await self._settled(node)
            life.left = 0  # a thread of a daemon that has ended writes nothing

    # Events.

    async def _act(self, node: PartitionNode, life: LifeTree) -> None:
        while not life.killed.is_set() and self._left > 0:
            self._left -= 1
            match self._draw.randrange(8):
                case 0 | 1 | 2 if len(node.pods) < LIVING:
                    await self._arrive(node, life)
                case 6:
                    await self._resize()
                case 7:
                    taken = self._draw.choice(["", "3", "1-2"])
                    path = f"{TOP}/system.slice/cpuset.cpus.exclusive"
                    with suppress(OSError):
                        self._kernel.write(path, taken)
                case _:
                    await self._depart(node)
            await asyncio.sleep(0.005 * self._draw.random())

    async def _arrive(self, node: PartitionNode, life: LifeTree) -> None:
        name = f"c{next(self._numbers)}"
        try:
            await node.create(name, self._draw.choice([0.2, 0.5, 1, 2]))
        except RuntimeRefusal:
            return
        await asyncio.sleep(0.005 * self._draw.random())
        await node.start(name)
        # Once it is killed, the next one has to see to it.
        if not life.killed.is_set():
            exclusive = node.plugin.policy.exclusive_cpus(node.plugin.state)
            if name in exclusive:
                assert together(node, name, self._running) == {}
                self.starts += 1
        self._running.add(name)

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

    async def _resize(self) -> None:
        if self._running:
            name = self._draw.choice(sorted(self._running))
            size = self._draw.choice([0.2, 0.5, 1, 2])
            # It may be stopped meanwhile.
            with suppress(RuntimeRefusal, KeyError):
                await self._runtime.update_container(name, asking_for(size))

    # Laws.

    async def _settled(self, node: PartitionNode) -> None:
        """Wait until all laws hold, which they do soon after the last event."""
        with suppress(TimeoutError):
            await until(lambda: not self._broken(node), patience(SETTLED))
        assert self._broken(node) == {}

    def _broken(self, node: PartitionNode) -> dict[str, object]:
        found: dict[str, object] = {
            name: (str(node.effective(name)), str(node.decided(name)))
            for name in self._running
            if node.effective(name) != node.decided(name)
        }
        if waiting := node.delivery.pending():
            found["waiting"] = sorted(waiting)
        for name in node.plugin.policy.exclusive_cpus(node.plugin.state):
            if name in self._running and (
                shared := together(node, name, self._running)
            ):
                found[f"together with {name}"] = shared
        return found


def together(node: PartitionNode, name: str, running: Iterable[str]) -> dict[str, str]:
    """Return CPUs of a container that others may run on."""
    own = node.effective(name)
    found = {one: node.effective(one) & own for one in running if one != name}
    return {one: str(shared) for one, shared in found.items() if shared}


@pytest.mark.parametrize("seed", range(4))
async def test_laws_hold_with_partitions(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)  # noqa: S311 - no secrets
    kernel = SharedKernel(CpuSet.parse("0-7"), ("system.slice", "k"))
    async with Runtime(tmp_path, SAFE) as runtime:
        runtime.world = PartitionWorld(kernel)
        state = StateDir.open(str(tmp_path / "state"))
        races = PartitionRaces(runtime, kernel, state, draw)
        for number in range(LIVES):
            await races.live(is_killed=number % 3 != 2)

    assert races.cuts
    assert races.starts
