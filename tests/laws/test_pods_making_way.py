"""A pod whose containers are placed together is refused for lack of CPUs only.

As a single container: those that share CPUs make way for its exclusive ones.
"""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
from hypothesis import example, given
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Created, PodCreated
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, QosClass
from tests.laws.test_making_way import MACHINES, STEP, Node, spec_of

# A pod, with the requests of its containers.
PODS: Final = st.lists(st.sampled_from((500, 1000, 2000, 3000)), min_size=1, max_size=3)


class PodNode(Node):
    """A node to which pods come whose containers are announced."""

    def pod_comes(self, number: int, amounts: list[int]) -> None:
        specs = containers_of(f"p{number:02}", amounts)
        asked = sum(one.request for one in specs)
        free = ONE_CPU * len(self.machine.online - self.reserved)
        unowned = self.unowned()
        expected = tuple(replace(one, id="") for one in specs)
        event = PodCreated(specs[0].pod, expected)
        decision = self.policy.decide(self.state, event)
        fits = sum(self.asked.values()) + asked <= free

        assert (decision.reasons[0].rule is Rule.POD_PLACED) is fits
        if not fits:
            return
        self.state = decision.state
        for one in specs:
            created = self.policy.decide(self.state, Created(one))
            (reason,) = created.reasons
            assert reason.rule is Rule.OLD_PLACE
            self.state = created.state
            self.asked[one.id] = one.request
        parts = self.policy.exclusive_parts(self.state)
        own = CpuSet.union(parts.get(one.id, NO_CPUS) for one in specs)
        nodes = self.machine.node_cpus
        if any(len(node & unowned) * ONE_CPU >= asked for node in nodes):
            assert len(self.machine.nodes_of(own)) <= 1


def containers_of(pod: str, amounts: list[int]) -> list[ContainerSpec]:
    """Make the containers of a Guaranteed pod."""
    return [
        ContainerSpec(
            f"{pod}-{at}",
            pod,
            f"{pod}/{at}",
            slot=str(at),
            name=str(at),
            qos=QosClass.GUARANTEED,
            request=MilliCpus(amount),
            limit=MilliCpus(amount),
        )
        for at, amount in enumerate(amounts)
    ]


@given(spec=MACHINES, steps=st.lists(st.one_of(STEP, PODS), min_size=5, max_size=20))
@example(
    spec="1s2n4c1t",
    steps=[(QosClass.BURSTABLE, 100), (QosClass.BURSTABLE, 100), [3000, 3000]],
)
def test_a_pod_is_placed_as_a_whole_as_long_as_the_sum_fits(
    spec: str, steps: list[tuple[QosClass, int] | int | list[int]]
) -> None:
    node = PodNode(parse_spec(spec), PodPlacement.SOFT)
    for number, step in enumerate(steps):
        match step:
            case list():
                node.pod_comes(number, step)
            case int():
                node.go(step)
            case _:
                node.come(spec_of(number, *step))
        node.check()
