"""The overhead of pods is accounted once, wherever it is reported."""

from __future__ import annotations

import pytest

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import Event
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import Reservation
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
from nri_resmgr.values import Bytes, MilliCpus, PolicyError
from tests.app.node import asking_for

GIB = 1 << 30
NOTHING = LinuxResources(cpu=LinuxCpu(0, 0, 0), memory=LinuxMemory(limit=0))

# Of five CPUs one is reserved.
MACHINE = "1s1n5c1t"


class Reasons(DecisionObserver):
    """Keeps the reasons of all decisions."""

    def __init__(self) -> None:
        self.all: list[Reason] = []

    def decided(self, _event: Event, decision: PolicyDecision) -> None:
        self.all += decision.reasons


def started(
    kind: str = "TopologyAwarePolicy", *observers: DecisionObserver
) -> ResourcePolicy:
    config = parse_config(document_of(kind))
    return ResourcePolicy(parse_spec(MACHINE), config, observers=observers)


def overhead_of(milli: int, memory: int) -> LinuxResources:
    """The overhead as the kubelet converts it: its limits are its requests."""
    cpu = LinuxCpu(milli * 1024 // 1000, milli * 100, 100_000)
    return LinuxResources(cpu=cpu, memory=LinuxMemory(limit=memory))


def pod_of(
    overhead: LinuxResources | None = None, namespace: str = "default", **tags: str
) -> Pod:
    linux = LinuxPod(
        cgroup_parent="/kubepods.slice/kubepods-podweb.slice", pod_overhead=overhead
    )
    return Pod(id="p", name="web", namespace=namespace, annotations=tags, linux=linux)


def container_of(name: str, cpus: float) -> Container:
    resources = asking_for(cpus)
    return Container(
        id=name,
        pod_sandbox_id="p",
        name=name,
        linux=LinuxContainer(resources=resources),
    )


def reserved(plugin: ResourcePolicy) -> tuple[Reservation, ...]:
    return plugin.policy.reservations(plugin.state)


def amounts(plugin: ResourcePolicy) -> list[tuple[str, MilliCpus, Bytes]]:
    return [
        (one.spec.name, one.spec.request, one.spec.memory_request)
        for one in reserved(plugin)
    ]


def granted(plugin: ResourcePolicy) -> int:
    """Count the thousandths that all pools have granted together."""
    return max(one.granted for one in plugin.policy.pools(plugin.state))


def test_an_overhead_takes_cpu_and_memory_until_its_pod_ends() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    plugin.create_container(pod, container_of("app", 2))

    assert amounts(plugin) == [(OVERHEAD_NAME, 250, GIB)]
    assert granted(plugin) == 2250
    plugin.stop_container(pod, container_of("app", 2))
    assert granted(plugin) == 250
    plugin.stop_pod_sandbox(pod)
    assert amounts(plugin) == []
    assert granted(plugin) == 0


@pytest.mark.parametrize("nothing", [None, NOTHING, overhead_of(0, 0)])
def test_zero_is_no_overhead(nothing: LinuxResources | None) -> None:
    plugin = started()
    plugin.run_pod_sandbox(pod_of(nothing))

    assert amounts(plugin) == []


def test_a_repeated_event_changes_nothing() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    before = plugin.state
    plugin.run_pod_sandbox(pod)

    assert plugin.state is before


def test_memory_alone_is_an_overhead() -> None:
    plugin = started()
    plugin.run_pod_sandbox(pod_of(overhead_of(0, GIB)))

    assert amounts(plugin) == [(OVERHEAD_NAME, 0, GIB)]


def test_without_a_state_the_overhead_is_known_from_the_runtime() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.synchronize([pod], [container_of("app", 2)])
    plugin.synchronize([pod], [container_of("app", 2)])

    assert amounts(plugin) == [(OVERHEAD_NAME, 250, GIB)]
    assert granted(plugin) == 2250


def test_the_overhead_of_a_pod_that_ended_meanwhile_is_released() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    plugin.synchronize([], [])

    assert amounts(plugin) == []


def test_after_a_switch_the_overhead_is_accounted_by_the_other_policy() -> None:
    plugin, pod = started("NonePolicy"), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    before = amounts(plugin)
    reconfigure(plugin, parse_config(document_of("TopologyAwarePolicy")))

    assert before == []
    assert amounts(plugin) == [(OVERHEAD_NAME, 250, GIB)]


def test_the_overhead_is_granted_to_no_container() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    with pytest.raises(PolicyError):
        plugin.create_container(pod, container_of("app", 4))
    plugin.create_container(pod, container_of("less", 3))

    assert plugin.policy.exclusive_cpus(plugin.state).keys() == {"less"}


def test_on_a_full_node_the_overhead_is_accounted_as_far_as_it_fits() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.create_container(pod_of(), container_of("app", 3.9))
    plugin.run_pod_sandbox(pod)
    short = granted(plugin)
    plugin.stop_container(pod_of(), container_of("app", 3.9))
    plugin.synchronize([pod], [])

    assert short == 4000
    assert granted(plugin) == 250


def test_system_pods_on_reserved_cpus_have_none() -> None:
    plugin = started()
    plugin.run_pod_sandbox(pod_of(overhead_of(250, GIB), namespace="kube-system"))
    asked = {"prefer-reserved-cpus.resource-policy.nri.io/pod": "true"}
    plugin.run_pod_sandbox(pod_of(overhead_of(250, GIB), **asked))

    assert amounts(plugin) == []


def test_the_overhead_has_a_rule_of_its_own() -> None:
    reasons = Reasons()
    plugin, pod = started("TopologyAwarePolicy", reasons), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    plugin.stop_pod_sandbox(pod)
    plugin.observers.finish()

    (reason,) = reasons.all  # no place of a container is returned
    assert (reason.rule, reason.title) == (Rule.POD_OVERHEAD, "default/web/(overhead)")
    assert reason.source == "pod overhead"


def test_the_memory_of_an_overhead_may_change_alone() -> None:
    plugin, pod = started(), pod_of(overhead_of(250, GIB))
    plugin.run_pod_sandbox(pod)
    plugin.update_pod_sandbox(pod, overhead_of(250, 2 * GIB), NOTHING)

    assert amounts(plugin) == [(OVERHEAD_NAME, 250, 2 * GIB)]
