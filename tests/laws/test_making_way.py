"""Exclusive CPUs are refused, or spread over nodes, for lack of CPUs only.

Not for how containers that share are spread: these make way.
"""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import (
    NO_CPUS,
    ONE_CPU,
    CpuSet,
    MilliCpus,
    PolicyError,
    QosClass,
)

MACHINES: Final = st.sampled_from(
    ("1s1n6c1t l3=2", "1s2n4c1t", "2s1n4c2t", "2s2n2c2t l3=1", "1s4n3c1t", "4s4c1t")
)
# A container that comes, with what it asks for, or one of those before that goes.
STEP: Final = st.one_of(
    st.tuples(
        st.sampled_from(QosClass),
        st.sampled_from((100, 500, 800, 1000, 1500, 2000, 3000, 4000, 6000)),
    ),
    st.integers(0, 30),
)


class Node:
    """A node with the policy, and plain sums beside it."""

    def __init__(
        self, machine: Machine, place_pods: PodPlacement = PodPlacement.OFF
    ) -> None:
        self.reserved = CpuSet.of(0)
        settings = TopologyAwareSettings(
            available=machine.online, reserved=self.reserved, place_pods=place_pods
        )
        self.policy = TopologyAwarePolicy(machine, settings)
        self.machine, self.state = machine, self.policy.start()
        self.asked: dict[str, int] = {}

    def fits(self, spec: ContainerSpec) -> bool:
        cpus = self.machine.online - self.reserved
        return sum(self.asked.values()) + spec.request <= ONE_CPU * len(cpus)

    def unowned(self) -> CpuSet:
        taken = CpuSet.union(self.policy.exclusive_parts(self.state).values())
        return self.machine.online - self.reserved - taken

    def come(self, spec: ContainerSpec) -> None:
        unowned = self.unowned()
        if not self.fits(spec):
            with pytest.raises(PolicyError):
                self.policy.decide(self.state, Created(spec))
            return
        self.state = self.policy.decide(self.state, Created(spec)).state
        self.asked[spec.id] = spec.request
        own = self.policy.exclusive_parts(self.state).get(spec.id, NO_CPUS)
        if any(len(node & unowned) >= len(own) for node in self.machine.node_cpus):
            assert len(self.machine.nodes_of(own)) <= 1

    def go(self, number: int) -> None:
        if self.asked:
            key = sorted(self.asked)[number % len(self.asked)]
            del self.asked[key]
            self.state = self.policy.decide(self.state, Stopped(key)).state

    def check(self) -> None:
        """Check that all containers have what they asked for, beside each other."""
        own = self.policy.exclusive_parts(self.state)
        pins = self.policy.pins(self.state)
        assert sum(map(len, own.values())) == len(CpuSet.union(own.values()))
        shared = {key: pins[key].cpus - own.get(key, NO_CPUS) for key in self.asked}
        for some in {*shared.values()} - {self.reserved}:
            assert some.isdisjoint(CpuSet.union(own.values()))
            # Those that have no other CPUs than these.
            bound = [key for key, cpus in shared.items() if cpus and cpus <= some]
            amounts = [
                self.asked[key] - ONE_CPU * len(own.get(key, NO_CPUS)) for key in bound
            ]
            assert sum(amounts) <= ONE_CPU * len(some)


def spec_of(number: int, qos: QosClass, amount: int) -> ContainerSpec:
    request = MilliCpus(0 if qos is QosClass.BEST_EFFORT else amount)
    # With a limit it is placed by its request, in the smallest pool that has it.
    limit = request or None
    key = f"c{number:02}"
    return ContainerSpec(key, key, key, qos=qos, request=request, limit=limit)


@given(spec=MACHINES, steps=st.lists(STEP, min_size=5, max_size=30))
@example(
    spec="1s2n4c1t",
    steps=[
        (QosClass.BURSTABLE, 100),
        (QosClass.BURSTABLE, 100),
        (QosClass.GUARANTEED, 6000),
    ],
)
def test_exclusive_cpus_are_granted_as_long_as_the_sum_fits(
    spec: str, steps: list[tuple[QosClass, int] | int]
) -> None:
    node = Node(parse_spec(spec))
    for number, step in enumerate(steps):
        if isinstance(step, int):
            node.go(step)
        else:
            node.come(spec_of(number, *step))
        node.check()
