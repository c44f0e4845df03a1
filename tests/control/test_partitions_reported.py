"""What status, explain and metrics say of partitions."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.app.metrics.of_partitions import series_of_partitions
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.running.delivery import ByRuntime
from nri_resmgr.cli.render_facts import exclusivity_facts
from nri_resmgr.control.partitions import exclusivity_of, partition_sentences
from nri_resmgr.policies import parse_config
from tests.app.node import config
from tests.host.partition_kernel import TOP
from tests.running.partition_node import BY_CPUSET, PartitionNode, partition_node


def sentences(node: PartitionNode, name: str) -> list[str]:
    spec = node.plugin.state.ledger.entries[name].spec
    return list(partition_sentences(spec, node.plugin))


def lines(node: PartitionNode) -> list[str]:
    facts = exclusivity_facts(exclusivity_of(node.plugin))
    return [f"{one.title} {one.text}".strip() for one in facts]


def metrics(node: PartitionNode) -> dict[str, object]:
    series = series_of_partitions(node.delivery)
    return {
        " ".join((one.metric.name, *labels)): value
        for one in series
        for labels, value in one.values.items()
    }


async def test_partitions_are_reported_with_the_reason_of_each_failure(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await node.run("web", 0.5)
        await node.run("db", 2)
        other = f"{TOP}/system.slice/cpuset.cpus.exclusive"
        node.kernel.write(other, "3-7")
        await node.run("cache", 1)
        await node.create("queue", 1)
        cannot = (
            f"cannot write '1-3' to {TOP}/k/cpuset.cpus.exclusive: invalid argument; a "
            "cgroup beside it has some of these CPUs in cpuset.cpus.exclusive, or only "
            "these in cpuset.cpus"
        )

        assert lines(node) == [
            "exclusivity partition, 1 of 3 partitions in force",
            f"shop/cache/cache: {cannot}",
            "shop/queue/queue: it has not been started yet",
        ]
        assert sentences(node, "db") == [
            "CPU 1-2: kept free of all other processes by the kernel, as root partition"
        ]
        assert sentences(node, "cache") == [
            f"CPU 3: not kept free by a partition of the kernel: {cannot}"
        ]
        assert sentences(node, "web") == []
        assert metrics(node) == {
            "nri_resmgr_partitions in-force": 1,
            "nri_resmgr_partitions refused": 1,
            "nri_resmgr_partitions waiting": 1,
            "nri_resmgr_partitions_refused_total": 1,
        }


async def test_the_reason_for_cpusets_instead_of_partitions_is_reported(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        node.partitions.why_not = "this host has cgroup v1; partitions need cgroup v2"
        await node.run("db", 2)

        assert lines(node) == [
            (
                "exclusivity cpuset instead of partition: this host has cgroup v1; "
                "partitions need cgroup v2"
            ),
        ]
        assert sentences(node, "db") == [
            (
                "no partition of the kernel in spite of exclusivity: partition: this "
                "host has cgroup v1; partitions need cgroup v2"
            ),
        ]
        node.plugin.use_delivery(ByRuntime(node.plugin, "--apply-updates is runtime"))
        assert lines(node) == [
            (
                "exclusivity cpuset instead of partition: cgroups are not written: "
                "--apply-updates is runtime"
            ),
        ]


async def test_nothing_is_reported_of_partitions_that_are_not_configured(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        reconfigure(node.plugin, parse_config(config(BY_CPUSET)))
        await node.run("db", 2)

        assert lines(node) == sentences(node, "db") == []
