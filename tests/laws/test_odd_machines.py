"""On every machine, what fits into a NUMA node is placed in one, on its fast CPUs."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import assume, example, given

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec, Created, Pin
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology import CoreKind, Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, QosClass
from tests.topology.odd_machines import MOST_CPUS, Oddities, odd_specs

_RESERVED: Final = "reservedResources: {cpu: 'cpuset:0'}"
DOCUMENTS: Final = {
    "TopologyAwarePolicy": f"{{{_RESERVED}}}",
    "StaticPolicy": f"{{{_RESERVED}}}",
    # Isolated CPUs would come first, wherever they are.
    "StaticPlusPolicy": (
        f"{{{_RESERVED}, pinMemory: true, preferIsolatedCPUs: false}}"
    ),
    "BalloonsPolicy": (
        f"{{{_RESERVED}, balloonTypes: [{{name: own, preferNewBalloons: true}}]}}"
    ),
}
# One CPU is reserved, and one is left.
MACHINES: Final = odd_specs(Oddities(least=2, ordinary=CpuSet.of(0, 1)))
HYBRID: Final = MACHINES.filter(lambda spec: "e" in spec.split()[0])


def rooms(machine: Machine) -> list[CpuSet]:
    """Return the CPUs of each NUMA node that a container is granted first.

    On hybrid machines these are the fast ones, however far they are from each other.
    """
    granted = machine.online - machine.isolated - CpuSet.of(0)
    granted = granted & machine.cpus_of_kind(CoreKind.PERFORMANCE) or granted
    return [node.cpus & granted for node in machine.nodes]


def has_nodes_around_caches(machine: Machine) -> bool:
    """Return whether no cache is shared by a part of one node and a part of another."""
    caches = {cache.cpus for cache in machine.caches}
    return all(
        cache <= node or node <= cache or not node & cache
        for node in machine.node_cpus
        for cache in caches
    )


def first_pin(kind: str, machine: Machine, count: int) -> Pin:
    """Return the pin of a Guaranteed container of *count* CPUs, the first one."""
    amount = MilliCpus(1000 * count)
    text = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {DOCUMENTS[kind]}\n"
    policy = build_policy(parse_config(text), machine)
    container = ContainerSpec(
        *("web", "pod"),
        preferences=Preferences(balloon="own" if kind == "BalloonsPolicy" else ""),
        qos=QosClass.GUARANTEED,
        request=amount,
        limit=amount,
    )
    return policy.decide(policy.start(), Created(container)).pin


@pytest.mark.parametrize("kind", DOCUMENTS)
@example(spec="16s1c around=8", number=1)
@example(spec="4s2c around=2 memory=4Gi", number=2)
@example(spec="2s4c emulated=4 memory=4Gi", number=2)
@given(spec=MACHINES, number=st.integers(0, MOST_CPUS))
def test_the_first_container_gets_a_node_that_it_fits_into(
    kind: str, spec: str, number: int
) -> None:
    machine = parse_spec(spec)
    assume(has_nodes_around_caches(machine))  # else the cache counts for more
    count = 1 + number % max(map(len, rooms(machine)))

    pin = first_pin(kind, machine, count)

    assert len(pin.cpus) == count
    homes = [node.cpus for node in machine.nodes if pin.cpus <= node.cpus]
    assert homes
    there = {node.id for node in machine.nodes if node.cpus and node.memory}
    own = {node.id for node in machine.nodes if node.cpus == homes[0] and node.memory}
    # Far memory is added only where the node has none that a process can start on.
    normal = any(machine.node(key).is_normal for key in own)
    assert {*pin.mems} & there <= own or not normal
    assert own <= {*pin.mems}


@pytest.mark.parametrize("kind", DOCUMENTS)
@example(spec="1s4c2t8e", number=3)
@example(spec="1s4c2t8e", number=7)
@given(spec=HYBRID, number=st.integers(0, MOST_CPUS))
def test_exclusive_cpus_are_fast_ones_as_long_as_there_are_any(
    kind: str, spec: str, number: int
) -> None:
    machine = parse_spec(spec)
    granted = machine.online - machine.isolated - CpuSet.of(0)

    pin = first_pin(kind, machine, 1 + number % len(granted))

    assume(pin.cpus <= granted)  # an isolated CPU comes first, whatever its core
    # To be near each other counts for more.
    near = granted
    for parts in (machine.packages, machine.dies, machine.nodes):
        near &= CpuSet.union(one.cpus for one in parts if one.cpus & pin.cpus)
    fast = near & machine.cpus_of_kind(CoreKind.PERFORMANCE)
    assert pin.cpus <= fast or fast <= pin.cpus
