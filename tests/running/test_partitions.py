"""The kernel keeps others off exclusive CPUs, so that nothing is written for them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.host_settings.wanted import use_in_force
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.verification.drift import differences_of
from nri_resmgr.host.cgroups.containers import CgroupReference, ContainerCgroups
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import Pin
from nri_resmgr.testing import PluginRefused
from nri_resmgr.values import CpuSet
from tests.app.node import asking_for as asking
from tests.app.node import config
from tests.host.partition_kernel import NOT_EXCLUSIVE, TOP
from tests.running.partition_node import (
    BY_CPUSET,
    BY_PARTITION,
    PartitionNode,
    partition_node,
)
from tests.waiting import until

Row: TypeAlias = tuple[str, float, str, dict[str, str], str]

SHARED = ("web", "log", "job")


async def fill(node: PartitionNode) -> None:
    for name in SHARED:
        await node.run(name, 0.5)
    node.kernel.writes.clear()


def written_for(node: PartitionNode) -> set[str]:
    """Return the shared containers whose cgroups were written."""
    paths = [path for path, _ in node.kernel.writes]
    return {name for name in SHARED if any(f"/{name}/" in path for path in paths)}


def kept_apart(node: PartitionNode) -> bool:
    own = node.effective("db")
    others = [node.effective(name) for name in SHARED]
    return all(one.isdisjoint(own) for one in others)


async def test_nothing_is_written_for_others_when_a_partition_comes_and_goes(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        wide = {name: node.written(name) for name in SHARED}
        created = await node.create("db", 2)
        assert created.updates == ()
        assert node.delivery.pending() == set(SHARED)

        await node.start("db")
        assert node.state("db") == "root"
        assert kept_apart(node)
        assert all(node.effective(name) == node.decided(name) for name in SHARED)
        assert node.kernel.effective("system.slice").isdisjoint(node.effective("db"))
        assert node.delivery.pending() == set()
        assert node.plugin.updates.pending.records == 0
        for name in SHARED:
            status = node.delivery.status_of(name)
            assert status is not None
            assert status.in_force == status.decided
            # Verification reads what is in force, not what is written.
            place = CgroupReference(name, f"/{node.folder(name)}")
            found = ContainerCgroups(node.kernel).read(place)
            assert found is not None
            assert found.cpus == node.decided(name) != node.written(name)
            assert differences_of(Pin(cpus=node.decided(name)), found) == ()

        await node.stop("db")
        await until(lambda: node.kernel.exclusive() == {})
        assert {name: node.effective(name) for name in SHARED} == wide
        assert written_for(node) == set()
        assert all(node.recorded(name) == wide[name] for name in SHARED)
        await until(lambda: node.delivery.pending() == set())


async def test_with_a_cgroup_below_its_scope_that_one_becomes_the_partition(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.create("late", 0.5)
        await node.start_in_two("late")
        shared = node.inner_folder("late")
        wide = node.kernel.effective(shared)
        await node.create("db", 2)
        await node.start_in_two("db")
        inner = node.inner_folder("db")
        own = node.kernel.effective(inner)

        # The processes are there, and the scope only hands the CPUs down.
        assert own == node.decided("db")
        assert node.kernel.read(f"{TOP}/{inner}/cpuset.cpus.partition") == "root"
        assert node.state("db") == "member"
        assert node.kernel.exclusive()[node.folder("db")] == str(own)
        assert node.kernel.effective(shared) == node.decided("late") < wide
        assert node.kernel.effective("system.slice").isdisjoint(own)
        assert written_for(node) == set()

        await node.runtime.update_container("db", asking(3))
        await until(lambda: node.kernel.effective(inner) == node.decided("db"))
        await until(lambda: len(node.kernel.effective(inner)) == len(own) + 1)
        assert node.kernel.effective(shared).isdisjoint(node.decided("db"))

        node.kernel.remove(inner)
        await node.stop("db")
        await until(lambda: node.kernel.exclusive() == {})
        assert node.kernel.effective(shared) == wide


async def test_a_container_created_beside_a_partition_gets_its_cpus_afterwards(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        await node.run("late", 0.5)
        narrow = node.written("late")
        assert narrow.isdisjoint(node.effective("db"))

        await node.stop("db")
        await until(lambda: node.written("late") == node.decided("late") != narrow)
        assert written_for(node) == set()


async def test_several_come_and_go_in_any_order(tmp_path: Path) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        for name in ("db", "cache", "queue"):
            await node.run(name, 1)
        assert node.effective("web") == node.decided("web")
        await node.stop("cache")
        await until(lambda: "k/pod-cache" not in node.kernel.exclusive())
        assert node.effective("web") == node.decided("web")
        assert node.effective("queue") == node.decided("queue")
        assert written_for(node) == set()


async def test_without_a_partition_the_others_are_written_before_the_start(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        node.kernel.write(f"{TOP}/system.slice/cpuset.cpus.exclusive", "0-7")
        await node.create("db", 2)
        with capture_logs() as logs:
            await node.start("db")

        assert kept_apart(node)
        assert written_for(node) == set(SHARED)
        assert node.delivery.pending() == set()
        [log] = [one for one in logs if one["event"] == "partition.refused"]
        assert "/k/cpuset.cpus.exclusive: invalid argument" in log["why"]
        assert node.partitions.counts.refused == 1
        assert not node.partitions.is_valid("db")


async def test_a_container_of_the_same_pod_is_updated_in_the_reply(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("side", 0.5)
        created = await node.create("db", 2, "pod-side")
        assert [one.container_id for one in created.updates] == ["side"]
        await node.start("db", "pod-side")

        assert node.state("db", "pod-side") == "root"
        assert written_for(node) == set()


async def test_containers_in_the_way_of_a_partition_are_written_first(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("side", 0.5)
        await node.create("db", 2, "pod-side")
        # The update of the reply gets lost.
        node.kernel.write(f"{TOP}/{node.folder('side')}/cpuset.cpus", "1-7")
        await node.start("db", "pod-side")

        assert node.state("db", "pod-side") == "root"
        assert node.written("side") == node.decided("side")


async def test_a_partition_that_becomes_invalid_is_replaced_by_cpusets(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        node.kernel.make("k/pod-db/intruder")
        with capture_logs() as logs:
            path = f"{TOP}/k/pod-db/intruder/cpuset.cpus"
            node.kernel.write(path, "0-7")
            node.partitions.demand()  # as the kernel's notification does
            await node.run("other", 0.5)
            await until(lambda: written_for(node) == set(SHARED))

        assert node.state("db") == "member"
        assert all(node.written(name) == node.decided(name) for name in SHARED)
        [log] = [one for one in logs if one["event"] == "partition.refused"]
        assert NOT_EXCLUSIVE in log["why"]


async def test_other_containers_leave_before_a_partition_ends(tmp_path: Path) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        node.kernel.writes.clear()
        reconfigure(node.plugin, parse_config(config(BY_CPUSET)))
        await until(lambda: node.state("db") == "member")

        assert kept_apart(node)
        paths = [path for path, _ in node.kernel.writes]
        end = paths.index("k/pod-db/db/cpuset.cpus.partition")
        assert {path.split("/")[2] for path in paths[:end]} == set(SHARED)
        assert node.kernel.exclusive() == {}

        reconfigure(node.plugin, parse_config(config(BY_PARTITION)))
        await until(lambda: node.state("db") == "root")


async def test_a_resized_container_keeps_a_partition(tmp_path: Path) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        await node.runtime.update_container("db", asking(3))
        await until(lambda: len(node.effective("db")) == 3)

        assert node.effective("db") == node.decided("db")
        assert kept_apart(node)
        assert written_for(node) == set()


async def test_a_restarted_plugin_takes_partitions_over(tmp_path: Path) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        node.kernel.writes.clear()
        await node.runtime.stop()
        await node.runtime.start()
        await node.runtime.synchronized("90-resource-policy")
        await until(lambda: node.delivery.pending() == set())

        assert node.state("db") == "root"
        assert kept_apart(node)
        assert written_for(node) == set()


async def record_follows(node: PartitionNode) -> None:
    """Wait until the record of shared containers has what was decided."""
    await until(
        lambda: all(node.recorded(name) == node.decided(name) for name in SHARED)
    )


async def test_the_record_follows_when_a_partition_ends(tmp_path: Path) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        assert all(node.recorded(name) != node.decided(name) for name in SHARED)
        assert node.plugin.updates.pending.records == 0

        reconfigure(node.plugin, parse_config(config(BY_CPUSET)))
        await record_follows(node)
        assert kept_apart(node)


async def test_the_record_follows_when_a_partition_becomes_invalid(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        node.kernel.make("k/pod-db/intruder")
        node.kernel.write(f"{TOP}/k/pod-db/intruder/cpuset.cpus", "0-7")
        node.partitions.demand()  # as the kernel's notification does
        node.plugin.delivery.send(())

        await record_follows(node)
        assert all(node.written(name) == node.decided(name) for name in SHARED)


async def test_the_record_follows_when_cpus_without_a_partition_come_after_it(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await fill(node)
        await node.run("db", 2)
        await node.stop("db")
        # It shares a CPU, so that it has no partition.
        await node.run("mixed", 1.5)
        assert not node.partitions.is_requested("mixed")

        await record_follows(node)
        exclusive = node.decided("mixed") - node.decided("web")
        assert len(exclusive) == 1
        assert all(node.written(name) == node.decided(name) for name in SHARED)


@pytest.mark.parametrize("word", ["partition", "isolated-partition"])
async def test_a_container_that_joins_ends_the_partition_before_its_creation(
    tmp_path: Path, word: str
) -> None:
    document = (
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
        f"  exclusivity: {word}\n  reservedResources: {{cpu: 1}}\n"
        "  balloonTypes: [{name: fast, namespaces: [shop], minCPUs: 4, maxCPUs: 4}]\n"
    )
    kinds = {"partition": "root", "isolated-partition": "isolated"}
    async with partition_node(tmp_path, document) as node:
        await node.run("db", 2)
        assert node.state("db") == kinds[word]

        created = await node.create("side", 1, "pod-db")
        assert node.state("db") == "member"
        assert created.adjustment.linux is not None
        resources = created.adjustment.linux.resources
        assert resources is not None
        assert resources.cpu is not None
        assert CpuSet.parse(resources.cpu.cpus) == node.effective("db")

        await node.start("side", "pod-db")
        assert node.state("db") == "member"


async def test_an_annotation_makes_an_isolated_partition(tmp_path: Path) -> None:
    document = config("{isolationAnnotations: true, exclusivity: partition}")
    key = "cpu-load-balancing.crio.io"
    async with partition_node(tmp_path, document) as node:
        await node.create("db", 2, annotations={key: "disable"})
        await node.start("db")

        assert node.state("db") == "isolated"
        # Nothing else writes the same files.
        [one] = use_in_force(node.plugin).isolated
        assert not one.request.unbalanced

        reconfigure(node.plugin, parse_config(config("{isolationAnnotations: true}")))
        [one] = use_in_force(node.plugin).isolated
        assert one.request.unbalanced


KIND: Final = "apiVersion: config.nri/v1alpha1\nkind: {}\nspec: "
SHARED_KEY: Final = "cpu-shared.crio.io"
FAST: Final = "{name: fast, namespaces: [shop], minCPUs: 1, maxCPUs: 2}"


async def exclusive(tmp_path: Path, document: str, *rows: Row) -> dict[str, str]:
    async with partition_node(tmp_path, document) as node:
        for name, cpus, pod, annotations, namespace in rows:
            await node.create(name, cpus, pod, annotations, namespace)
        found = node.plugin.policy.exclusive_cpus(node.plugin.state)
        assert all(node.decided(key) == cpus for key, cpus in found.items())
        return {key: str(cpus) for key, cpus in found.items()}


def row(
    name: str,
    cpus: float,
    pod: str = "",
    annotations: dict[str, str] | None = None,
    namespace: str = "shop",
) -> Row:
    return name, cpus, pod, annotations or {}, namespace


@pytest.mark.parametrize(
    ("document", "rows", "names"),
    [
        pytest.param(
            KIND.format("StaticPolicy") + "{}",
            [row("db", 2), row("web", 0.5)],
            {"db"},
            id="static",
        ),
        pytest.param(
            KIND.format("StaticPolicy") + "{pinCPU: false}",
            [row("db", 2)],
            set(),
            id="static, without pinning",
        ),
        pytest.param(
            config("{isolationAnnotations: true}"),
            [
                row("db", 2),
                row("mixed", 1.5),
                row("both", 1, "", {SHARED_KEY: "enable"}),
                row("web", 0.5),
                row("system", 1, "", {}, "kube-system"),
            ],
            {"db"},
            id="topology-aware: those that share no CPUs",
        ),
        pytest.param(
            KIND.format("BalloonsPolicy") + f"{{balloonTypes: [{FAST}]}}",
            [
                row("db", 2),
                row("default", 2, "", {}, "other"),
                row("system", 1, "", {}, "kube-system"),
            ],
            {"db"},
            id="balloons: no built-in ones, where others may come",
        ),
        pytest.param(
            KIND.format("BalloonsPolicy") + f"{{balloonTypes: [{FAST}]}}",
            [row("db", 1), row("side", 1, "pod-db")],
            set(),
            id="balloons: two in one",
        ),
    ],
)
async def test_which_containers_have_exclusive_cpus_only(
    tmp_path: Path, document: str, rows: list[Row], names: set[str]
) -> None:
    assert (await exclusive(tmp_path, document, *rows)).keys() == names


def together(node: PartitionNode, started: Collection[str]) -> list[tuple[str, str]]:
    """Return containers that may run on exclusive CPUs of others."""
    exclusive = node.plugin.policy.exclusive_cpus(node.plugin.state)
    return [
        (own, other)
        for own in exclusive.keys() & set(started)
        for other in started
        if other != own
        and node.effective(other, node.pods[other])
        & node.effective(own, node.pods[own])
    ]


def as_decided(node: PartitionNode, started: Collection[str]) -> bool:
    return not node.delivery.pending() and all(
        node.effective(one, node.pods[one]) == node.decided(one) for one in started
    )


@pytest.mark.parametrize("seed", range(6))
async def test_exclusive_cpus_are_so_whatever_happens(
    tmp_path: Path, seed: int
) -> None:
    draw = Random(seed)  # noqa: S311 - no secrets
    foreign = f"{TOP}/system.slice/cpuset.cpus.exclusive"
    async with partition_node(tmp_path) as node:
        for number in range(60):
            started = [*node.pods]
            match draw.randrange(8):
                case 0 | 1 | 2:
                    pod = node.pods[draw.choice(started)] if started else ""
                    pod = draw.choice(["", pod])
                    name, size = f"c{number}", draw.choice([0.2, 0.5, 1, 2])
                    try:
                        await node.run(name, size, pod)
                    except PluginRefused:
                        continue
                    assert together(node, [*node.pods]) == []
                case 3 | 4 | 5 if started:
                    gone = draw.choice(started)
                    await node.stop(gone, node.pods[gone])
                case 6:
                    taken = draw.choice(["", "3", "1-2"])
                    with contextlib.suppress(OSError):
                        node.kernel.write(foreign, taken)
                case 7:
                    word = draw.choice([BY_PARTITION, BY_CPUSET])
                    reconfigure(node.plugin, parse_config(config(word)))
            await until(lambda: as_decided(node, [*node.pods]))
            assert together(node, [*node.pods]) == []


async def test_partitions_that_are_out_of_date_when_they_are_made_do_not_count(
    tmp_path: Path,
) -> None:
    async with partition_node(tmp_path) as node:
        await node.run("own", 2)
        partitions = node.delivery.partitions
        await until(lambda: partitions.is_valid("own"))
        wanted = partitions.requests()
        making = asyncio.create_task(partitions.apply(wanted))
        await asyncio.sleep(0)
        time.sleep(0.1)  # noqa: ASYNC251 - its thread makes them; the loop is busy
        reconfigure(node.plugin, parse_config(config(BY_CPUSET)))
        partitions.end_overlapping("new", wanted["own"].cpus)
        await making
        await until(lambda: as_decided(node, ["own"]))

        assert partitions.results == {}
