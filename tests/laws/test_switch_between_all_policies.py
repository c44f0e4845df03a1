"""Running containers survive a switch from each policy to each other one."""

from __future__ import annotations

from itertools import permutations
from typing import Final

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.plugin.engine import Engine
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.find import BUILT_IN
from nri_resmgr.policy.events import ContainerSpec, Created, Pin
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus, PolicyError, QosClass
from tests.examples import examples
from tests.topology.odd_machines import Oddities, odd_specs

MACHINES: Final = (
    odd_specs(Oddities(least=10, ordinary=CpuSet.parse("0-9")))
    | st.just("2s2n4c1t isolated=15")
).map(parse_spec)
RESERVED: Final = CpuSet.parse("0")

_LISTS: Final = "[{name: e, exclusive: true, cpuLists: [{cpus: '1-2'}, {cpus: '9'}]}]"
_TYPE: Final = "{name: b, namespaces: [other], preferNewBalloons: true}"
_RESERVED: Final = "reservedResources: {cpu: 'cpuset:0'}"
SPECS: Final = {
    "BalloonsPolicy": f"{{{_RESERVED}, balloonTypes: [{_TYPE}]}}",
    "DynamicPoolsPolicy": f"{{{_RESERVED}, pools: [{{name: d, namespaces: [other]}}]}}",
    "NonePolicy": "{}",
    "PodpoolsPolicy": f"{{{_RESERVED}, pools: [{{name: a, cpu: 2, instances: 2}}]}}",
    "StaticPlusPolicy": f"{{{_RESERVED}}}",
    "StaticPolicy": f"{{{_RESERVED}}}",
    "StaticPoolsPolicy": f"{{pools: {_LISTS}}}",
    "TopologyAwarePolicy": f"{{{_RESERVED}}}",
}
KINDS: Final = sorted(SPECS)


@st.composite
def containers(draw: st.DrawFn) -> list[ContainerSpec]:
    """Draw containers that name pools of some policies."""
    found = []
    for number in range(draw(st.integers(1, 7))):
        qos = draw(st.sampled_from(QosClass))
        milli = draw(st.sampled_from([200, 1000, 1500, 2000, 4000]))
        request = MilliCpus(0 if qos is QosClass.BEST_EFFORT else milli)
        namespace = draw(st.sampled_from(["default", "other", "kube-system"]))
        found.append(
            ContainerSpec(
                id=f"c{number}",
                pod=f"p{draw(st.integers(0, 3))}",
                title=f"{namespace}/c{number}",
                namespace=namespace,
                qos=qos,
                request=request,
                limit=request if qos is QosClass.GUARANTEED else None,
                preferences=Preferences(
                    pod_pool=draw(st.sampled_from(["", "a"])),
                    preserve_cpus=draw(st.sampled_from([False, False, True])),
                ),
                pool_request=PoolRequest(draw(st.sampled_from(["", "e"]))),
            )
        )
    return found


def config_of(kind: str) -> PolicyConfig:
    return parse_config(
        f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {SPECS[kind]}\n"
    )


class Node:
    """A node with containers, and the pins that its runtime has of them."""

    def __init__(self, machine: Machine, kind: str, specs: list[ContainerSpec]) -> None:
        self.machine = machine
        self.engine = Engine(machine, config_of(kind))
        self.runtime: dict[str, Pin] = {}
        self.create(specs)

    def create(self, specs: list[ContainerSpec]) -> None:
        """Create containers; the policy may refuse some."""
        for spec in specs:
            try:
                decision = self.engine.decide(Created(spec))
            except PolicyError:
                continue
            self.runtime[spec.id] = decision.pin
            self.apply(decision)

    def switch(self, kind: str) -> PolicyDecision:
        """Put another policy in force, and apply its updates."""
        decision = self.engine.rebuild(config_of(kind), self.machine, may_lose=True)
        self.apply(decision)
        return decision

    def apply(self, decision: PolicyDecision) -> None:
        for one in decision.updates:
            self.runtime[one.container] = one.pin.over(self.runtime[one.container])

    def check(self) -> None:
        """Recount, from what the runtime has, what each policy promises."""
        policy, state = self.engine.policy, self.engine.state
        specs = {key: one.spec for key, one in state.ledger.entries.items()}
        assert specs.keys() == self.runtime.keys()
        for key, pin in policy.pins(state).items():
            assert self.runtime[key] == pin.over(self.runtime[key])
        if policy.kind == "NonePolicy":
            return
        pinned = {
            key: pin.cpus
            for key, pin in self.runtime.items()
            if not specs[key].preferences.preserve_cpus
        }
        for key, cpus in pinned.items():
            assert cpus, key
            assert cpus <= self.machine.online
        alone = policy.exclusive_parts(state)
        for (one, cpus), (other, others) in permutations(pinned.items(), 2):
            assert cpus.isdisjoint(alone.get(other, NO_CPUS)), (one, other)
            assert alone.get(other, NO_CPUS) <= others
        if policy.kind != "StaticPoolsPolicy":  # it reserves no CPUs
            assert not any(RESERVED & cpus for cpus in alone.values())


def test_all_kinds_are_here() -> None:
    assert sorted(BUILT_IN) == KINDS


@pytest.mark.parametrize(("first", "second"), list(permutations(KINDS, 2)))
@examples(0.06)
@given(machine=MACHINES, specs=containers())
def test_containers_are_placed_by_the_next_policy_and_by_the_former_one(
    first: str, second: str, machine: Machine, specs: list[ContainerSpec]
) -> None:
    node = Node(machine, first, specs)
    before = dict(node.runtime)
    node.switch(second)
    node.check()
    if second == "NonePolicy":
        assert node.runtime == before
    assert not node.switch(second).updates
    node.create([msgspec.structs.replace(one, id=f"new-{one.id}") for one in specs])
    node.check()
    node.switch(first)
    node.check()
    # Where more is requested than there is, weights settle with the second placement.
    settled = node.switch(first).updates
    assert not [one for one in settled if one.pin.cpus or one.pin.mems]
    assert not node.switch(first).updates
