"""A reload of systemd writes what systemd has for units into their cgroups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.policies import parse_config
from nri_resmgr.values import CpuSet
from tests.app.node import UNSAFE, config
from tests.host.partition_kernel import TOP
from tests.running.node import (
    SHORT,
    CgroupNode,
    NodeExtras,
    cgroup_node,
    cpus,
    decided,
)
from tests.running.partition_node import (
    BY_CPUSET,
    PartitionNode,
    systemd_partition_node,
)
from tests.running.systemd_double import Bus, SystemdDouble, bus_below, systemd_on
from tests.waiting import until

pytestmark = pytest.mark.process

SHARED: Final = ("one", "two")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with bus_below(tmp_path / "host") as started:
        yield started


async def run_shared(node: CgroupNode) -> Mapping[str, str]:
    """Run containers; return the CPUs that the runtime has set in their units."""
    for name in SHARED:
        await node.run(name, 0.5)
    return {name: node.recorded(name) for name in SHARED}


async def run_exclusive(node: CgroupNode) -> None:
    """Run a container for which the others leave CPUs."""
    await node.run("exclusive", 2)
    await until(lambda: are_as_decided(node))


def are_as_decided(node: CgroupNode) -> bool:
    return all(cpus(node, name) == decided(node, name) for name in SHARED)


def in_unit(systemd: SystemdDouble, name: str) -> list[str]:
    """Return the CPUs of each call for a container's unit."""
    return [one["AllowedCPUs"] for one in systemd.values(f"cri-{name}.scope")]


def reload(node: CgroupNode, units: Mapping[str, str]) -> None:
    """Write the CPUs of units into their cgroups, as systemd does."""
    for name, text in units.items():
        (node.path(name) / "cpuset.cpus").write_text(f"{text}\n")


async def test_without_a_bus_old_cpus_are_written_over_at_once(
    tmp_path: Path, bus: Bus
) -> None:
    bus.stop()
    extras = NodeExtras(bus.address, watches=True)
    # No request comes, by which the record of this runtime could follow.
    async with cgroup_node(tmp_path, level=UNSAFE, extras=extras) as node:
        units = await run_shared(node)
        await run_exclusive(node)
        own = cpus(node, "exclusive")
        await asyncio.sleep(1.5)  # until nothing is compared any more
        reload(node, units)
        shared = [not cpus(node, name).isdisjoint(own) for name in SHARED]
        await until(lambda: are_as_decided(node))
        alone = [cpus(node, name).isdisjoint(own) for name in SHARED]
        bus.start()
        async with systemd_on(bus) as systemd:
            await until(lambda: all(in_unit(systemd, name) for name in SHARED))

        assert shared == alone == [True, True]
        for name in SHARED:
            assert {CpuSet.parse(text) for text in in_unit(systemd, name)} == {
                decided(node, name)
            }


async def test_a_reload_before_units_are_set_brings_nothing_back(
    tmp_path: Path, bus: Bus
) -> None:
    extras = NodeExtras(bus.address, watches=True)
    async with (
        systemd_on(bus) as systemd,
        cgroup_node(tmp_path, level=UNSAFE, extras=extras) as node,
    ):
        units, properties = await run_shared(node), node.delivery.units
        assert properties is not None
        systemd.answers.clear()
        await run_exclusive(node)
        # One call is on its way, the other value is still collected.
        await until(lambda: len(properties.waiting) == 1)
        reload(node, units)
        are_back = not are_as_decided(node)
        await until(lambda: are_as_decided(node))
        systemd.answers.set()
        await until(lambda: not properties.waiting)
        await until(lambda: all(in_unit(systemd, name) for name in SHARED))
        await asyncio.sleep(0.5)  # until nothing is compared any more
        rewritten = node.delivery.counts.rewritten
        reload(node, {name: in_unit(systemd, name)[-1] for name in SHARED})

        assert are_back
        assert are_as_decided(node)
        assert rewritten == len(SHARED)


async def run_with_partition(node: PartitionNode) -> dict[str, str]:
    """Run containers, one with a partition; return the CPUs that their units have."""
    for name in SHARED:
        await node.run(name, 0.5)
    await node.run("exclusive", 2)
    return {name: str(node.recorded(name)) for name in (*SHARED, "exclusive")}


def reload_partitions(node: PartitionNode, units: Mapping[str, str]) -> None:
    """Write the CPUs of units into their cgroups, as systemd does."""
    for name, text in units.items():
        node.kernel.write(f"{TOP}/{node.folder(name)}/cpuset.cpus", text)


def has_exclusive_cpus(node: PartitionNode) -> bool:
    """Return whether all have what was decided, and one of them is alone."""
    own = node.effective("exclusive")
    return own == node.decided("exclusive") and all(
        node.effective(name) == node.decided(name)
        and node.effective(name).isdisjoint(own)
        for name in SHARED
    )


async def test_a_reload_leaves_partitions_in_force(tmp_path: Path, bus: Bus) -> None:
    async with (
        systemd_on(bus) as systemd,
        systemd_partition_node(tmp_path, bus.address) as node,
    ):
        units = await run_with_partition(node)
        wide = [CpuSet.parse(units[name]) for name in SHARED]
        before = node.state("exclusive"), has_exclusive_cpus(node)
        node.kernel.writes.clear()
        reload_partitions(node, units)
        written = list(node.kernel.writes)
        node.partitions.demand()  # as at a change that the kernel reports
        node.delivery.send(SHARED)
        await until(lambda: not node.delivery.pending())
        await asyncio.sleep(4 * SHORT)  # in which a call would come

        # systemd has the CPUs of the partition for the others, too.
        assert all(one & node.effective("exclusive") for one in wide)
        assert before == (node.state("exclusive"), has_exclusive_cpus(node))
        assert before == ("root", True)
        assert node.kernel.writes == written
        assert systemd.calls == []


async def test_a_reload_after_a_partition_has_ended_brings_nothing_back(
    tmp_path: Path, bus: Bus
) -> None:
    async with (
        systemd_on(bus) as systemd,
        systemd_partition_node(tmp_path, bus.address) as node,
    ):
        units = await run_with_partition(node)
        reconfigure(node.plugin, parse_config(config(BY_CPUSET)))
        await until(lambda: node.state("exclusive") == "member")
        await until(lambda: all(in_unit(systemd, name) for name in SHARED))
        ended = has_exclusive_cpus(node)
        last = {name: in_unit(systemd, name)[-1] for name in SHARED}
        reload_partitions(node, units | last)

        assert ended
        assert all(last[name] != units[name] for name in SHARED)
        assert has_exclusive_cpus(node)
