"""Pods with resources of their own: their CPUs are a budget for their containers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policies import parse_config
from nri_resmgr.scenario.read import document_of
from nri_resmgr.stub.model import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    Pod,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, PolicyError
from tests.app.node import asking_for
from tests.laws.reborn import reborn

KINDS = ("TopologyAwarePolicy", "BalloonsPolicy", "StaticPolicy", "StaticPlusPolicy")

RESOURCES = "noderesource.dev/resources"

NOTHING = LinuxResources()
ZEROS = LinuxResources(cpu=LinuxCpu(0, 0, 0), memory=LinuxMemory(limit=0))


def started(kind: str) -> ResourcePolicy:
    return ResourcePolicy(parse_spec("1s1n16c1t"), parse_config(document_of(kind)))


def pod_of(cpus: float, **annotations: str) -> Pod:
    linux = LinuxPod(
        cgroup_parent="/kubepods.slice/kubepods-podweb.slice",
        pod_resources=asking_for(cpus),
    )
    return Pod(
        id="p", name="web", namespace="default", annotations=annotations, linux=linux
    )


def container_of(name: str, cpus: float) -> Container:
    """A container as the kubelet creates it: a silent one gets the pod's limit."""
    return Container(
        id=name,
        pod_sandbox_id="p",
        name=name,
        labels={"io.kubernetes.container.name": name},
        linux=LinuxContainer(resources=asking_for(cpus)),
    )


def requests(plugin: ResourcePolicy) -> dict[str, int]:
    entries = plugin.state.ledger.entries
    return {key: one.spec.request for key, one in entries.items()}


def cpus(plugin: ResourcePolicy) -> Mapping[str, CpuSet]:
    return {key: pin.cpus for key, pin in plugin.policy.pins(plugin.state).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_containers_without_requests_share_the_rest_of_the_budget(kind: str) -> None:
    plugin, pod = started(kind), pod_of(4)
    for name, asked in (("app", 4), ("log", 4), ("db", 2)):
        plugin.create_container(pod, container_of(name, asked))

    assert requests(plugin) == {"app": 1000, "log": 1000, "db": 2000}
    exclusive = plugin.policy.exclusive_cpus(plugin.state)
    assert not exclusive.keys() & {"app", "log"}
    if kind != "BalloonsPolicy":
        assert len(exclusive["db"]) == 2
        # They are not bound to their parts: together they use what the node shares.
        assert len(cpus(plugin)["app"]) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_of_one_container_is_as_before(kind: str) -> None:
    plugin, pod = started(kind), pod_of(4)
    plugin.create_container(pod, container_of("app", 4))

    assert requests(plugin) == {"app": 4000}
    assert len(cpus(plugin)["app"]) == 4


def test_the_first_one_gives_back_its_cpus_when_another_comes() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(15)
    plugin.create_container(pod, container_of("app", 15))
    alone = cpus(plugin)["app"]
    reply = plugin.create_container(pod, container_of("log", 15))

    assert len(alone) == 15
    assert reply is not None
    assert requests(plugin) == {"app": 7500, "log": 7500}
    assert cpus(plugin)["app"] == cpus(plugin)["log"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_container_takes_nothing_from_the_others(kind: str) -> None:
    plugin, pod = started(kind), pod_of(4)
    plugin.create_container(pod, container_of("app", 4))
    before = plugin.state
    with pytest.raises(PolicyError):
        plugin.create_container(pod, container_of("huge", 64))

    assert plugin.state is before
    assert len(cpus(plugin)["app"]) == 4
    assert plugin.delivery.pending() == frozenset()


def test_an_annotation_of_the_pod_divides_from_the_beginning() -> None:
    text = {
        "pod": {"limits": {"cpu": 4, "memory": "1Gi"}},
        "containers": {"app": {}, "log": {}, "db": {"limits": {"cpu": 2}}},
    }
    plugin = started("TopologyAwarePolicy")
    pod = pod_of(4, **{RESOURCES: json.dumps(text)})
    with capture_logs() as lines:
        plugin.create_container(pod, container_of("app", 4))

    assert requests(plugin) == {"app": 1000}
    assert plugin.policy.exclusive_cpus(plugin.state) == {}
    assert [one for one in lines if one["log_level"] == "warning"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_update_and_a_synchronization_keep_the_parts(kind: str) -> None:
    plugin, pod = started(kind), pod_of(4)
    containers = [container_of(name, 4) for name in ("app", "log")]
    for one in containers:
        plugin.create_container(pod, one)
    before = requests(plugin)
    plugin.update_container(pod, containers[0], LinuxResources())
    updated = requests(plugin)
    plugin.synchronize([pod], containers)

    assert before == updated == requests(plugin) == {"app": 2000, "log": 2000}


def test_a_daemon_without_its_state_divides_again() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    plugin.synchronize([pod], [container_of(name, 4) for name in ("app", "log")])

    assert requests(plugin) == {"app": 2000, "log": 2000}


def test_a_container_that_is_resized_to_the_pods_limit_gets_it() -> None:
    # The runtime still has the resources of the pod as they were at its creation.
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    containers = [container_of(name, 2) for name in ("app", "log")]
    for one in containers:
        plugin.create_container(pod, one)
    plugin.update_container(pod, containers[0], asking_for(4))
    resized = requests(plugin)
    plugin.synchronize([pod], [container_of("app", 4), containers[1]])
    synchronized = requests(plugin)
    plugin.create_container(
        pod, msgspec.structs.replace(container_of("app", 4), id="app-2")
    )

    assert resized == synchronized == {"app": 4000, "log": 2000}
    assert requests(plugin) == {"log": 2000, "app-2": 4000}


def test_the_next_container_of_a_name_takes_the_part_of_the_last_one() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    again = msgspec.structs.replace(container_of("app", 4), id="app-2")
    plugin.create_container(pod, again)

    assert requests(plugin) == {"log": 2000, "app-2": 2000}


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(None, id="nothing of the pod is known"),
        pytest.param(LinuxResources(cpu=LinuxCpu(4096)), id="the pod has no limit"),
    ],
)
def test_pods_without_a_limit_are_left_alone(resources: Any) -> None:
    plugin = started("TopologyAwarePolicy")
    linux = LinuxPod(
        cgroup_parent="/kubepods.slice/kubepods-podweb.slice", pod_resources=resources
    )
    pod = Pod(id="p", name="web", namespace="default", linux=linux)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))

    assert requests(plugin) == {"app": 4000, "log": 4000}


def sums(cpus: float) -> LinuxResources:
    """The sums of a pod as an update has them; the kubelet sends all of them."""
    return asking_for(cpus)


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_of_the_sandbox_gives_its_containers_other_parts(kind: str) -> None:
    plugin, pod = started(kind), pod_of(4)
    for name, asked in (("app", 4), ("log", 4), ("db", 2)):
        plugin.create_container(pod, container_of(name, asked))
    plugin.update_pod_sandbox(pod, NOTHING, sums(6))

    assert requests(plugin) == {"app": 2000, "log": 2000, "db": 2000}
    plugin.update_pod_sandbox(pod, NOTHING, sums(3))
    assert requests(plugin) == {"app": 500, "log": 500, "db": 2000}


def test_an_update_without_amounts_changes_nothing() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    before = plugin.state
    for _ in range(2):
        plugin.update_pod_sandbox(pod, NOTHING, ZEROS)
        plugin.update_pod_sandbox(pod, NOTHING, sums(4))

    assert plugin.state is before


def test_a_container_that_comes_later_shares_the_present_sums() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    # The runtime goes on reporting the sums of the creation.
    plugin.update_pod_sandbox(pod, NOTHING, sums(9))
    plugin.create_container(pod, container_of("late", 9))

    assert requests(plugin) == {"app": 3000, "log": 3000, "late": 3000}


def test_an_update_that_the_node_cannot_grant_is_refused_and_changes_nothing() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    before = plugin.state
    with pytest.raises(PolicyError, match="default/web/app asks for 15 shared CPU"):
        plugin.update_pod_sandbox(pod, NOTHING, sums(30))

    assert plugin.state is before
    plugin.create_container(pod, container_of("late", 4))
    assert sum(requests(plugin).values()) <= 4000


def test_updated_sums_survive_a_restart() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    plugin.update_pod_sandbox(pod, NOTHING, sums(6))
    state = reborn(plugin.policy, plugin.state, Draft())
    again = started("TopologyAwarePolicy")
    again.engine.restore_from(lambda _: state)
    again.synchronize([pod], [container_of("app", 4), container_of("log", 4)])

    assert requests(again) == {"app": 3000, "log": 3000}
    again.create_container(pod, container_of("late", 6))
    assert requests(again) == {"app": 2000, "log": 2000, "late": 2000}


def test_sums_of_a_removed_pod_are_forgotten() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    plugin.update_pod_sandbox(pod, NOTHING, sums(6))
    plugin.stop_pod_sandbox(pod)
    plugin.remove_pod_sandbox(pod)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))

    assert requests(plugin) == {"app": 2000, "log": 2000}


def test_an_update_can_bring_another_overhead() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    plugin.run_pod_sandbox(pod)
    plugin.update_pod_sandbox(pod, asking_for(0.5), ZEROS)
    (more,) = plugin.policy.reservations(plugin.state)
    plugin.update_pod_sandbox(pod, NOTHING, sums(4))

    assert more.spec.request == 500
    assert plugin.policy.reservations(plugin.state) == (more,)


def test_the_sums_count_for_the_first_one_without_requests_as_well() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    plugin.create_container(pod, container_of("db", 2))
    plugin.update_pod_sandbox(pod, NOTHING, sums(9))
    plugin.create_container(pod, container_of("app", 9))

    assert requests(plugin) == {"db": 2000, "app": 7000}


def test_updated_sums_outlive_the_containers_present_at_the_update() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    plugin.update_pod_sandbox(pod, NOTHING, sums(6))
    plugin.create_container(pod, container_of("late", 6))
    for name in ("app", "log"):
        plugin.stop_container(pod, container_of(name, 4))
    state = reborn(plugin.policy, plugin.state, Draft())
    again = started("TopologyAwarePolicy")
    again.engine.restore_from(lambda _: state)
    again.synchronize([pod], [container_of("late", 6)])
    again.create_container(pod, container_of("next", 6))

    assert requests(again) == {"late": 3000, "next": 3000}


def test_memory_follows_at_once() -> None:
    plugin, pod = started("TopologyAwarePolicy"), pod_of(4)
    for name in ("app", "log"):
        plugin.create_container(pod, container_of(name, 4))
    more = LinuxResources(memory=LinuxMemory(limit=2 << 30))
    plugin.update_pod_sandbox(pod, NOTHING, more)

    entries = plugin.state.ledger.entries.values()
    assert [one.spec.memory_request for one in entries] == [1 << 30, 1 << 30]
