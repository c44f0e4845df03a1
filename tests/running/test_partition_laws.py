"""The laws of partition races find what they are there for.

Each defect is that of a daemon which writes too little or too much: its writes pass
through a tree that leaves some out, or adds some.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import pytest

from nri_resmgr.testing import Runtime
from nri_resmgr.values import NO_CPUS
from tests.app.node import SAFE, config
from tests.host.partition_kernel import TOP
from tests.real_host.patience import patience
from tests.running.partition_laws import PartitionLaws
from tests.running.partition_node import (
    BY_CPUSET,
    BY_PARTITION,
    PartitionNode,
    partition_plugin,
)
from tests.running.partition_races import CPUS
from tests.running.race_laws import SETTLED
from tests.running.shared_kernel import LifeTree, SharedKernel
from tests.waiting import until

pytestmark = pytest.mark.slow

OWN: Final = "db"
SHARED: Final = "web"
PARTITION: Final = f"{TOP}/k/pod-{OWN}/{OWN}/cpuset.cpus.partition"
NO_PARTITION: Final = f"no partition of {OWN}"
_EXCLUSIVE: Final = "cpuset.cpus.exclusive"

# What is written instead, in this order, of a text to a path.
Defect: TypeAlias = Callable[[str, str], list[tuple[str, str]]]


def makes_no_partition(path: str, text: str) -> list[tuple[str, str]]:
    return [] if text == "root" else [(path, text)]


def makes_partitions_of_fewer_cpus(path: str, text: str) -> list[tuple[str, str]]:
    if path.endswith(f"/{OWN}/{_EXCLUSIVE}"):
        text = text.partition("-")[0]
    return [(path, text)]


def leaves_cpus_handed_down(path: str, text: str) -> list[tuple[str, str]]:
    return [] if path == f"{TOP}/k/{_EXCLUSIVE}" and not text else [(path, text)]


def ends_a_partition_to_make_another(path: str, text: str) -> list[tuple[str, str]]:
    if path.endswith(f"/later/{_EXCLUSIVE}"):
        return [(PARTITION, "member"), (PARTITION, "root"), (path, text)]
    return [(path, text)]


def writes_no_cpus_of_others(path: str, text: str) -> list[tuple[str, str]]:
    return [] if path.endswith(f"/{SHARED}/cpuset.cpus") else [(path, text)]


@attrs.define(eq=False)
class DefectiveTree(LifeTree):
    """The files of a kernel for a daemon with a defect.

    Attributes:
        defect: None for one without.
    """

    defect: Defect | None = None

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        for written in self.defect(path, text) if self.defect else [(path, text)]:
            super().write(*written)


@attrs.frozen(eq=False)
class WatchedNode:
    """A node, the laws about it, and the names of its containers that run."""

    node: PartitionNode
    laws: PartitionLaws
    running: set[str]

    async def run(self, name: str, cpus: float) -> None:
        """Run a container."""
        await self.node.run(name, cpus)
        self.running.add(name)

    async def stop(self, name: str) -> None:
        """Stop a container."""
        self.running.remove(name)
        await self.node.stop(name)

    def broken(self) -> dict[str, object]:
        """Return what is wrong, where no other program has CPUs for itself."""
        return self.laws.broken(NO_CPUS, NO_CPUS)

    async def settles(self) -> bool:
        """Wait until all laws hold, as races do; return whether they do."""
        with suppress(TimeoutError):
            await until(lambda: not self.broken(), patience(SETTLED))
        return not self.broken()


@asynccontextmanager
async def watched_node(
    folder: Path, defect: Defect | None = None, document: str = BY_PARTITION
) -> AsyncIterator[WatchedNode]:
    """Run a shared container on a node, and a daemon that may have a defect."""
    kernel = SharedKernel(CPUS, ("system.slice", "k"))
    running = set[str]()
    async with (
        Runtime(folder, SAFE) as runtime,
        partition_plugin(
            runtime, DefectiveTree(kernel, defect=defect), config(document)
        ) as (plugin, delivery),
    ):
        node = PartitionNode(runtime, plugin, delivery, kernel)
        one = WatchedNode(node, PartitionLaws(node, kernel, running), running)
        await one.run(SHARED, 0.5)
        assert await one.settles(), one.broken()
        yield one


async def history(node: WatchedNode) -> set[str]:
    """Let exclusive containers come and go until laws stay broken; return these."""
    for act in (
        partial(node.run, OWN, 2),
        partial(node.run, "later", 1),
        partial(node.stop, "later"),
        partial(node.stop, OWN),
    ):
        await act()
        if not await node.settles():
            break
        node.laws.keep()
    return set(node.broken())


async def test_without_a_defect_all_laws_hold(tmp_path: Path) -> None:
    async with watched_node(tmp_path) as node:
        assert await history(node) == set()


@pytest.mark.parametrize(
    ("defect", "law"),
    [
        (makes_no_partition, NO_PARTITION),
        (makes_partitions_of_fewer_cpus, NO_PARTITION),
        (leaves_cpus_handed_down, "handed down"),
        (ends_a_partition_to_make_another, "ended meanwhile"),
    ],
)
async def test_a_defect_breaks_a_law(tmp_path: Path, defect: Defect, law: str) -> None:
    async with watched_node(tmp_path, defect) as node:
        assert law in await history(node)


async def test_others_that_stay_on_exclusive_cpus_break_laws(tmp_path: Path) -> None:
    broken = []
    for number, defect in enumerate((None, writes_no_cpus_of_others)):
        folder = tmp_path / str(number)
        folder.mkdir()
        # Partitions would keep them off all the same.
        async with watched_node(folder, defect, BY_CPUSET) as node:
            broken.append(await history(node))

    as_they_are, left_there = broken
    assert as_they_are == {NO_PARTITION}
    assert left_there == {NO_PARTITION, SHARED, f"together with {OWN}"}


async def test_a_waiting_or_unnoticed_change_breaks_laws(tmp_path: Path) -> None:
    async with watched_node(tmp_path) as node:
        await node.node.create(OWN, 2)
        before_the_start = node.broken()
        await node.node.start(OWN)
        node.running.add(OWN)
        assert await node.settles()
        # Without the kernel's notification.
        node.node.kernel.write(PARTITION, "member")
        unnoticed = node.broken()
        node.running.remove(OWN)
        unreported = node.broken()

    assert before_the_start["waiting"] == [SHARED]
    assert unnoticed["reported otherwise"] == [OWN]
    assert unreported["grants of others"] == {OWN}
