"""A restart while the runtime's record is behind what is in force."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nri_resmgr.app.plugin.changes.rebalancing import rebalance
from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.values import CpuSet
from tests.app.node import UNSAFE, asking_for
from tests.running.moved_containers import LARGE, MACHINE, NAMES, killed_node
from tests.running.node import CgroupNode, cgroup_node, cpus, decided
from tests.waiting import until

# Longer than the test: what is compared later would hide a wrong decision.
NO_CHECKS = DeliveryTimes(check_after=60)


@asynccontextmanager
async def moved_node(folder: Path) -> AsyncIterator[CgroupNode]:
    """Move two containers by their cgroups; the runtime takes no calls."""
    async with cgroup_node(folder, MACHINE, UNSAFE, NO_CHECKS) as node:
        for name in LARGE:
            await node.run(name, 4)
        for name in NAMES:
            await node.run(name, 0.5)
        for name in LARGE:
            await node.stop(name)
        rebalance(node.plugin, Rebalance(limit=5))
        await until(lambda: not node.plugin.delivery.pending())
        yield node


def places(node: CgroupNode) -> dict[str, CpuSet]:
    return {name: cpus(node, name) for name in NAMES}


def recorded(node: CgroupNode) -> dict[str, CpuSet]:
    return {name: CpuSet.parse(node.recorded(name)) for name in NAMES}


async def test_containers_stay_where_they_moved_when_the_runtime_restarts(
    tmp_path: Path,
) -> None:
    async with moved_node(tmp_path) as node:
        now = places(node)
        assert now != recorded(node)
        assert now == {name: decided(node, name) for name in NAMES}
        await node.begin_again()
        await until(lambda: not node.plugin.delivery.pending())

        assert {name: decided(node, name) for name in NAMES} == now
        assert places(node) == now
        # The record follows with the replies of this session.
        assert node.plugin.updates.pending.records == 2
        await node.runtime.update_container("a", asking_for(0.5))
        assert recorded(node) == now


async def test_values_written_by_another_program_are_no_decision(
    tmp_path: Path,
) -> None:
    async with moved_node(tmp_path) as node:
        for name in NAMES:
            await node.runtime.update_container(name, asking_for(0.5))
        now = recorded(node)
        assert now == places(node)
        (node.path("a") / "cpuset.cpus").write_text("12-13\n")
        (node.path("a") / "cpuset.cpus.effective").write_text("12-13\n")
        await node.begin_again()
        await until(lambda: not node.plugin.delivery.pending())

        assert {name: decided(node, name) for name in NAMES} == now
        assert places(node) == now


async def test_containers_stay_where_they_moved_when_the_daemon_is_killed(
    tmp_path: Path,
) -> None:
    async with killed_node(tmp_path) as node:
        now = node.places()
        await node.begin_again()

        assert await node.decided() == now
        async with asyncio.timeout(60):
            while node.recorded() != now:  # it follows with replies
                await node.runtime.update_container("a", asking_for(0.5))
        assert node.places() == now


async def test_without_their_cgroups_the_record_counts(tmp_path: Path) -> None:
    async with killed_node(tmp_path) as node:
        for name in NAMES:
            node.cgroups.end(name)
        await node.begin_again()

        assert await node.decided() == node.recorded()
