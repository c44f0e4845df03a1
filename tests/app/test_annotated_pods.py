"""What pods say in their annotations, from the socket to the policy and back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.events import ContainerSpec, Event, PodCreated
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.stub import Container, Mount, Pod
from nri_resmgr.stub.model import (
    IoPriority,
    IoPriorityClass,
    Scheduler,
    SchedulerPolicy,
)
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.topology.hints import Hint
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, NodeSet
from tests.app.node import Node, running_node

CLASSES = """
  schedulingClasses:
  - {name: slow, policy: idle, ioClass: be, ioPriority: 7}
"""
SLOW = {"scheduling-class.resource-policy.nri.io/pod": "slow"}


def reserved_places(node: Node) -> int:
    state = node.plugin.state
    assert isinstance(state, TopologyAwareState)
    return len(state.reserved_places)


async def test_a_scheduling_class_is_part_of_the_creation(tmp_path: Path) -> None:
    async with running_node(tmp_path, spec=CLASSES) as node:
        created = await node.run("web", 0.5, SLOW)

        linux = created.adjustment.linux
        assert linux is not None
        assert (linux.scheduler, linux.io_priority) == (
            Scheduler(policy=SchedulerPolicy.IDLE),
            IoPriority(IoPriorityClass.BE, 7),
        )


async def test_an_unknown_class_is_reported_and_ignored(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        with capture_logs() as lines:
            created = await node.run("web", 0.5, SLOW)

        linux = created.adjustment.linux
        assert linux is not None
        assert linux.scheduler is None
        assert [
            (one["title"], one["asked"])
            for one in lines
            if one["event"] == "scheduling.no-such-class"
        ] == [("default/web/web", "slow")]


async def test_preferences_reach_the_policy(tmp_path: Path) -> None:
    shared = {"prefer-shared-cpus.resource-policy.nri.io/pod": "true"}
    async with running_node(tmp_path) as node:
        await node.run("own", 1)
        await node.run("web", 1, shared)
        spec = node.plugin.state.ledger.spec_of("web")

        assert spec.preferences.shared is True
        assert len(CpuSet.parse(node.pinned("own")[0])) == 1
        assert len(CpuSet.parse(node.pinned("web")[0])) > 1


async def test_a_mistake_in_a_strict_annotation_refuses_the_container(
    tmp_path: Path,
) -> None:
    key = "cpu.preserve.resource-policy.nri.io/pod"
    async with running_node(tmp_path) as node:
        await node.run_pod("web", {key: "on"})
        with pytest.raises(RuntimeRefusal, match=f"default/web/web: annotation {key}"):
            await node.create("web", 1)

        assert list(node.plugin.state.ledger.entries) == []


async def test_a_mistake_in_an_optional_annotation_is_logged_once(
    tmp_path: Path,
) -> None:
    key = "hide-hyperthreads.resource-policy.nri.io/pod"
    async with running_node(tmp_path) as node:
        with capture_logs() as lines:
            await node.run("web", 1, {key: "perhaps"})
            await node.resize("web", 2)

        assert [
            (one["event"], one["pod"], one["container"], one["key"])
            for one in lines
            if one["log_level"] == "warning"
        ] == [("annotation.ignored", "default/web", "web", key)]


async def test_the_amounts_that_a_pod_announces_place_it_as_a_whole(
    tmp_path: Path,
) -> None:
    announced = {
        "noderesource.dev/resources": (
            '{"containers": {"web": {"requests": {"cpu": "2", "memory": "1Gi"}, '
            '"limits": {"cpu": "2", "memory": "1Gi"}}}}'
        )
    }
    async with running_node(tmp_path, spec="{placePods: soft}") as node:
        with capture_logs() as lines:
            await node.run("web", 2, announced)
        await node.run_pod("never-started", announced)
        reserved = reserved_places(node)
        await node.runtime.remove_pod("pod-never-started")

        events = [(one["event"], one.get("rule")) for one in lines]
        assert ("pod.placed", "pod-placed") in events
        assert ("container.placed", "old-place") in events
        assert (reserved, reserved_places(node)) == (1, 0)


async def test_a_resize_of_announced_amounts_is_legitimate(tmp_path: Path) -> None:
    announced = {
        "noderesource.dev/resources": (
            '{"containers": {"web": {"limits": {"cpu": "2", "memory": "1Gi", '
            '"vendor.com/gpu": "1"}}}}'
        )
    }
    async with running_node(tmp_path) as node:
        with capture_logs() as lines:
            await node.run("web", 2, announced)
            await node.resize("web", 3)

        spec = node.plugin.state.ledger.spec_of("web")
        assert (spec.request, spec.source, spec.extended) == (
            3000,
            "annotation, resized",
            {"vendor.com/gpu": 1},
        )
        assert len(CpuSet.parse(node.pinned("web")[0])) == 3
        assert [one for one in lines if one["log_level"] == "warning"] == []


async def test_the_annotations_of_a_removed_pod_are_discarded(tmp_path: Path) -> None:
    other = {
        "noderesource.dev/resources": '{"containers": {"web": {"limits": {"cpu": 3}}}}'
    }
    async with running_node(tmp_path) as node:
        with capture_logs() as lines:
            for _ in range(2):
                await node.run("web", 1, other)
                await node.resize("web", 1)
                await node.runtime.stop_pod("pod-web")
                await node.runtime.remove_pod("pod-web")

        logged = [one for one in lines if one["event"] == "requests.stale"]
        assert len(logged) == 2


def test_a_container_that_runs_is_not_refused_for_a_mistake(tmp_path: Path) -> None:
    key = "cpu.preserve.resource-policy.nri.io/pod"
    plugin = ResourcePolicy(parse_spec("1s2n4c1t"), tree=HostTree(tmp_path))
    pod = Pod(id="p", name="web", namespace="default", annotations={key: "on"})
    container = Container(id="c", pod_sandbox_id="p", name="web")
    with capture_logs() as lines:
        plugin.synchronize([pod], [container])

    assert list(plugin.state.ledger.entries) == ["c"]
    assert "annotation.ignored" in [one["event"] for one in lines]


@pytest.mark.parametrize(
    ("strict", "event"),
    [
        pytest.param(
            "true", "container.refused", id="it must be near, so it is refused"
        ),
        pytest.param("false", "hints.unreadable", id="else it is placed without hints"),
    ],
)
async def test_a_disk_with_an_unreadable_numa_node_refuses_only_strict_hints(
    tmp_path: Path, strict: str, event: str
) -> None:
    host = tmp_path / "host"
    disk = host / "sys/devices/pci0/disk"
    for folder in (disk, host / "proc/1", host / "sys/dev/block"):
        folder.mkdir(parents=True)
    (disk / "numa_node").write_text("nonsense")
    (host / "sys/dev/block/8:1").symlink_to("../../devices/pci0/disk")
    (host / "proc/1/mountinfo").write_text("1 0 8:1 / / rw - ext4 d rw\n")
    asked = {"strict.topologyhints.resource-policy.nri.io/pod": strict}
    async with running_node(tmp_path) as node:
        await node.run_pod("web", asked)
        with capture_logs() as lines, suppress(RuntimeRefusal):
            await node.create("web", 1, Mount("/data", "bind", "/data", ("rw",)))

        warnings = [one for one in lines if one["log_level"] == "warning"]
        assert [
            one["event"] for one in warnings if "nonsense" in one.get("why", "")
        ] == [event]


HINT = {
    "test.topologyhints.resource-policy.nri.io/pod": "{disk: {NUMAs: '1'}}",
}


@pytest.mark.parametrize(
    ("testing", "hints"),
    [
        pytest.param(
            True, (Hint("disk", CpuSet.parse("4-7"), NodeSet.of(1)),), id="in a test"
        ),
        pytest.param(False, (), id="nowhere else"),
    ],
)
async def test_hints_can_be_handed_in(
    tmp_path: Path, *, testing: bool, hints: tuple[Hint, ...]
) -> None:
    def plugin_options(_runs: Path) -> PluginOptions:
        return PluginOptions(testing=testing)

    async with running_node(tmp_path, plugin_options=plugin_options) as node:
        await node.run("web", 1, HINT)

        assert node.plugin.state.ledger.spec_of("web").hints == hints


async def test_hints_follow_the_machine(tmp_path: Path) -> None:
    def plugin_options(_runs: Path) -> PluginOptions:
        return PluginOptions(testing=True)

    async with running_node(tmp_path, plugin_options=plugin_options) as node:
        await node.run("web", 1, HINT)
        change_machine(node.plugin, parse_spec("1s2n4c1t offline=4-5"))

        assert node.plugin.state.ledger.spec_of("web").hints == (
            Hint("disk", CpuSet.parse("6-7"), NodeSet.of(1)),
        )


class Arrivals(DecisionObserver):
    """Keeps the containers that new pods are expected to have."""

    def __init__(self) -> None:
        self.expected: tuple[ContainerSpec, ...] = ()

    def decided(self, event: Event, _decision: PolicyDecision) -> None:
        if isinstance(event, PodCreated):
            self.expected = event.expected


@pytest.mark.parametrize(
    ("containers", "read", "unread"),
    [pytest.param(5, 5, 0, id="few"), pytest.param(3000, 0, 1, id="very many")],
)
def test_annotations_are_read_ahead_for_as_many_containers_as_fit(
    containers: int, read: int, unread: int
) -> None:
    names = ",".join(f'"c{n}":{{}}' for n in range(containers))
    partners = ",".join(f"c{n}" for n in range(1000))
    pod = Pod(
        id="p",
        annotations={
            "noderesource.dev/resources": f'{{"containers":{{{names}}}}}',
            # Each container has a rule.
            "resource-policy.nri.io/affinity": f"x: [{partners}]",
        },
    )
    arrivals = Arrivals()
    policy = ResourcePolicy(parse_spec("1s2c1t"), observers=[arrivals])
    with capture_logs() as lines:
        policy.run_pod_sandbox(pod)
    with_rules = [one for one in arrivals.expected if one.preferences.affinities]

    assert (len(arrivals.expected), len(with_rules)) == (containers, read)
    assert [x["event"] for x in lines].count("annotations.unread") == unread
