"""Which writes a start waits for, and that a creation waits for none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.testing import PluginRefused
from tests.app.node import UNSAFE
from tests.running.node import CgroupNode, cgroup_node, cpus, decided
from tests.waiting import until

# A comparison of what was written long before would be held, too.
NO_CHECKS = DeliveryTimes(check_after=60)

MANY = 520
"""More containers than one series of writes has."""


async def run_known(node: CgroupNode, name: str, size: float) -> None:
    """Run a container, and wait until its cgroup was compared."""
    await node.run(name, size)
    await until(lambda: is_known(node, name))


def is_known(node: CgroupNode, name: str) -> bool:
    status = node.delivery.status_of(name)
    return status is not None and status.in_force is not None


def misplaced(node: CgroupNode, started: str, running: list[str]) -> dict[str, str]:
    """Return CPUs of a container that others are on and should have left."""
    own = decided(node, started)
    found = {one: (cpus(node, one) - decided(node, one)) & own for one in running}
    return {one: str(shared) for one, shared in found.items() if shared}


async def test_a_start_that_no_write_concerns_does_not_wait(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, times=NO_CHECKS) as node:
        await run_known(node, "shared", 0.5)
        before = cpus(node, "shared")
        node.tree.hold("cri-shared.scope/cpuset.cpus")
        await node.create("exclusive", 2)
        node.make_cgroup("exclusive")
        await until(node.tree.is_held.is_set)
        await node.run("late", 0.5)  # whose CPUs nothing has to leave
        during, late = cpus(node, "shared"), node.delivery.counts.late_starts
        node.tree.release()
        await node.runtime.start_container("exclusive")
        await until(lambda: cpus(node, "shared").isdisjoint(cpus(node, "exclusive")))

        assert (during, late) == (before, 0)


async def test_a_start_does_not_wait_for_others_to_grow(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, times=NO_CHECKS) as node:
        await run_known(node, "shared", 0.5)
        await node.run("first", 2)
        await node.create("second", 1)
        node.make_cgroup("second")
        await until(lambda: not node.delivery.pending())
        before = cpus(node, "shared")
        node.tree.hold("cri-shared.scope/cpuset.cpus")
        await node.stop("first")
        await until(node.tree.is_held.is_set)
        await node.runtime.start_container("second")
        during, late = cpus(node, "shared"), node.delivery.counts.late_starts
        node.tree.release()
        await until(lambda: cpus(node, "shared") == decided(node, "shared") > before)

        assert (during, late) == (before, 0)


@pytest.mark.slow
async def test_a_creation_is_answered_while_many_are_written(tmp_path: Path) -> None:
    names = [f"shared{number}" for number in range(MANY)]
    machine = "1s1n16c1t memory=4Ti"
    async with cgroup_node(tmp_path, machine, times=NO_CHECKS) as node:
        for name in names:
            await node.run(name, 0.01)
        before = {name: cpus(node, name) for name in names}
        # Another thread compares memory nodes, which does not keep CPUs from writes.
        node.tree.hold("cri-shared", "cpuset.cpus")
        await node.create("exclusive", 2)
        await until(node.tree.is_held.is_set)
        await node.create("other", 1)  # fails if it is not answered in time
        during = {name: cpus(node, name) for name in names}
        waiting = node.delivery.pending()
        node.tree.release()
        await until(lambda: not node.delivery.pending())

        assert during == before
        assert waiting == set(names)
        for name in ("exclusive", "other"):
            assert misplaced(node, name, names) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_no_start_finds_others_on_cpus_that_they_leave(
    tmp_path: Path, seed: int
) -> None:
    """Requests come while writes are under way; each takes a while."""
    draw = Random(seed)  # noqa: S311 - no secrets
    created: list[str] = []
    running: list[str] = []
    checked = 0
    async with cgroup_node(tmp_path, "1s2n8c1t", level=UNSAFE) as node:
        node.tree.seconds = 0.003
        for number in range(120):
            match draw.randrange(8):
                case 0 | 1 | 2 if len(created) < 3:
                    name = f"c{number}"
                    try:
                        await node.create(name, draw.choice([0.2, 0.2, 0.5, 1, 2]))
                    except PluginRefused:
                        continue
                    node.make_cgroup(name)
                    created.append(name)
                case 0 | 1 | 2 | 3 | 4 if created:
                    name = created.pop(draw.randrange(len(created)))
                    late = node.delivery.counts.late_starts
                    await node.runtime.start_container(name)
                    # On a busy machine a deadline may have come.
                    if node.delivery.counts.late_starts == late:
                        assert misplaced(node, name, running) == {}
                        checked += 1
                    running.append(name)
                case 5 | 6 if len(running) > draw.randrange(12):
                    await node.stop(running.pop(draw.randrange(len(running))))
                case 7:
                    await asyncio.sleep(0.05 * draw.random())
        await until(lambda: not node.delivery.pending())

        assert checked
        assert all(cpus(node, one) == decided(node, one) for one in running)
