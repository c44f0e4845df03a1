"""A policy grants what it says that it can grant, and on one node nothing more."""

from __future__ import annotations

from random import Random
from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from nri_resmgr.policy.events import ContainerSpec, Created
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import CpuRoom
from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ONE_CPU, CpuSet, MilliCpus, PolicyError, QosClass
from tests.examples import examples
from tests.topology.odd_machines import Oddities, odd_specs

KINDS: Final = {
    "TopologyAwarePolicy": "reservedResources: {cpu: 750m}",
    "StaticPolicy": 'reservedResources: {cpu: "1"}',
    "StaticPlusPolicy": 'reservedResources: {cpu: "1"}',
    "BalloonsPolicy": (
        'reservedResources: {cpu: "1"}, balloonTypes: '
        "[{name: wide, maxCPUs: 6, preferNewBalloons: true, namespaces: [default]}]"
    ),
}
MACHINES: Final = (
    "1s1n2c1t",
    "1s1n8c2t",
    "1s4n4c1t",
    "2s2n4c2t",
    "1s2n6c1t l3=2",
    "4s4c1t around=2",
    "2s4c1t emulated=2",
)
# One CPU is reserved, and one is left.
DRAWN: Final = odd_specs(Oddities(least=2, ordinary=CpuSet.of(0, 1)))
AMOUNTS: Final = (0, 100, 500, 999, 1000, 1500, 2000, 3000, 3500, 6000)
WHOLE: Final = (Rule.WHOLE_CPUS, Rule.MIXED_CPUS, Rule.NEW_BALLOON)


def lived(kind: str, machine: str, seed: int) -> InProcessNode:
    """Return a node after some random containers came, and some of them went."""
    random = Random(seed)  # noqa: S311 - repeatable
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{{KINDS[kind]}}}"
    node = InProcessNode(parse_spec(machine), text)
    node.plugin.synchronize((), ())
    for number in range(random.randint(0, 14)):
        if node.containers and random.random() < 0.3:
            node.stop_pod(random.choice(sorted(node.pods)))
            continue
        qos, key = random.choice(list(QosClass)), f"pod-{number}"
        amount = 0 if qos is QosClass.BEST_EFFORT else random.choice(AMOUNTS[1:])
        row = ContainerRow(qos=qos, request=MilliCpus(amount))
        if node.run_pod(pod_of(key, row)):
            node.create(key, container_of(f"c-{number}", row, node.capacity))
    return node


def rooms(node: InProcessNode) -> list[CpuRoom]:
    policy, state = node.plugin.policy, node.plugin.state
    cpus = (one.cpus for one in node.plugin.machine.nodes)
    return [policy.cpu_room(state, one) for one in cpus]


def grants(node: InProcessNode, request: int) -> bool:
    """Return whether one more Guaranteed container would get what it requests."""
    # One of the two has a type of balloons for it.
    return any(grants_in(node, one, request) for one in ("default", "other"))


def grants_in(node: InProcessNode, namespace: str, request: int) -> bool:
    spec = ContainerSpec(
        *("probe", "probe", "probe"),
        namespace=namespace,
        qos=QosClass.GUARANTEED,
        request=MilliCpus(request),
        limit=MilliCpus(request),
        # Room is of ordinary CPUs.
        preferences=Preferences(isolated=False),
    )
    try:
        node.plugin.policy.decide(node.plugin.state, Created(spec))
    except PolicyError:
        return False
    return True


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS)
@examples(0.12)
@given(seed=st.integers(0, 1 << 20))
def test_available_cpus_are_granted(kind: str, machine: str, seed: int) -> None:
    check_available(lived(kind, machine, seed))


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(machine=DRAWN, seed=st.integers(0, 1 << 20))
@example(machine="4s1n1c1t1e around=4 memory=4Gi", seed=0)
def test_available_cpus_of_odd_machines_are_granted(
    kind: str, machine: str, seed: int
) -> None:
    check_available(lived(kind, machine, seed))


def check_available(node: InProcessNode) -> None:
    """Check that what each NUMA node says is available would be granted."""
    for one in rooms(node):
        assert 0 <= one.available <= one.allocatable
        for request in {one.available, one.available // ONE_CPU * ONE_CPU} - {0}:
            assert grants(node, request), (request, rooms(node))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "StaticPolicy"])
@examples(0.12)
@given(seed=st.integers(0, 1 << 20))
def test_no_node_reports_less_than_it_can_grant(
    kind: str, machine: str, seed: int
) -> None:
    check_not_less(lived(kind, machine, seed))


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "StaticPolicy"])
@examples(0.3)
@given(machine=DRAWN, seed=st.integers(0, 1 << 20))
def test_no_odd_machine_reports_less_than_it_can_grant(
    kind: str, machine: str, seed: int
) -> None:
    check_not_less(lived(kind, machine, seed))


def check_not_less(node: InProcessNode) -> None:
    """Check that a CPU which would be granted is available on a NUMA node."""
    found = rooms(node)

    # One CPU is always on one node.
    assert grants(node, ONE_CPU) == any(one.available >= ONE_CPU for one in found)


@pytest.mark.parametrize("machine", ["1s1n2c1t", "1s1n8c2t", "1s1n6c1t l3=2"])
@examples(0.25)
@given(seed=st.integers(0, 1 << 20), more=st.integers(1, 3 * ONE_CPU))
def test_a_request_larger_than_the_only_node_is_refused(
    machine: str, seed: int, more: int
) -> None:
    node = lived("TopologyAwarePolicy", machine, seed)
    (room,) = rooms(node)

    assert node.plugin.policy.keeps_to_room
    assert not grants(node, room.available + more)


def test_fractions_left_over_in_several_caches_are_an_exclusive_cpu() -> None:
    text = (
        "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
        'spec: {reservedResources: {cpu: "cpuset:0"}}'
    )
    node = InProcessNode(parse_spec("1s1n6c1t l3=2"), text)
    node.plugin.synchronize((), ())
    for number in range(5):
        row = ContainerRow(qos=QosClass.GUARANTEED, request=MilliCpus(800))
        assert node.run_pod(pod_of(f"pod-{number}", row))
        made = container_of(f"c-{number}", row, node.capacity)
        assert node.create(f"pod-{number}", made)

    # 1 of 5 CPUs is left, in parts: some of the others make way to the root for it.
    assert rooms(node) == [CpuRoom(MilliCpus(5000), MilliCpus(1000))]
    assert grants(node, ONE_CPU)
    assert not grants(node, ONE_CPU + 1)
