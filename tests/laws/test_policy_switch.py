"""Containers stay pinned, and in one place, when another policy is configured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.config import BadSetting
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped, Synchronized
from nri_resmgr.policy.static import StaticPolicy, StaticSettings
from nri_resmgr.policy.static_plus import StaticPlusPolicy, StaticPlusSettings
from nri_resmgr.values import CpuSet
from tests.examples import steps
from tests.laws import balloons_node, policy_node, topology_aware_node
from tests.laws.balloons_draws import containers, documents
from tests.laws.balloons_recount import (
    check_balloons,
    check_disjoint,
    check_numbers,
    is_preserved,
)
from tests.laws.memory_recount import check_memory
from tests.laws.topology_aware_draws import IDS, MACHINES, SETTINGS, on
from tests.laws.topology_aware_recount import check_capacity, check_exclusive

# Of a node whose policies both pin all containers but the excluded ones.
_SETTINGS = SETTINGS.map(
    lambda one: {**one, "options": {**_options(one), "pin_cpus": True}}
)


def _options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    return dict(chosen["options"])


_DOCUMENTS = documents().map(
    lambda one: {k: v for k, v in one.items() if k != "pinCPU"}
)


_PODPOOLS = """
apiVersion: config.nri/v1alpha1
kind: PodpoolsPolicy
spec:
  pools: [{{name: web, cpu: 1, instances: {instances}, maxPods: {limit}}}]
"""

_STATIC_POOLS = """
apiVersion: config.nri/v1alpha1
kind: StaticPoolsPolicy
spec: {{pools: {pools}}}
"""


class PoliciesGiveWay(policy_node.Node):
    """Switches in both directions, with containers created and removed between."""

    @initialize(machines=MACHINES, chosen=_SETTINGS)
    def begin(self, machines: tuple[str, ...], chosen: Mapping[str, Any]) -> None:
        """Begin with pools."""
        self.machine = machines[0]
        self.begin_with(topology_aware_node.Conditions(machine=self.machine, **chosen))

    @rule(spec=containers())
    def create(self, spec: ContainerSpec) -> None:
        """A container comes, if there is room."""
        spec = msgspec.structs.replace(on(self.policy.machine, spec), slot="")
        if spec.id not in self.specs:
            decision = self.decide(Created(spec))
            if decision is not None:
                self.specs[spec.id] = spec
                self.runtime[spec.id] = self.believed[spec.id] = decision.pin
                self.take(decision, own=spec.id)

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container goes."""
        decision = self.decided(Stopped(container))
        self.drop([container])
        self.take(decision)

    @rule(spec=_DOCUMENTS)
    def switch_to_balloons(self, spec: Mapping[str, Any]) -> None:
        """The document asks for balloons, if it fits; else nothing changes."""
        there = balloons_node.Conditions(machine=self.machine, spec=spec)
        if there.fits:
            self.switch(there)

    @rule(chosen=_SETTINGS)
    def switch_to_pools(self, chosen: Mapping[str, Any]) -> None:
        """The document asks for pools."""
        there = topology_aware_node.Conditions(machine=self.machine, **chosen)
        self.switch(there)

    @rule(
        kind=st.sampled_from(
            [(StaticPolicy, StaticSettings), (StaticPlusPolicy, StaticPlusSettings)]
        ),
        count=st.integers(1, 2),
    )
    def pass_by_exclusive_and_shared(self, kind: tuple[Any, Any], count: int) -> None:
        """The document asks for a static policy, and again for the former one."""
        make, settings_of = kind
        machine = self.policy.machine
        ordinary = machine.online - machine.isolated or machine.online
        rules = settings_of(available=machine.online, reserved=ordinary.lowest(count))
        policy = make(machine, rules)
        event = Synchronized(tuple(self.present().values()))
        made = policy.decide(policy.start(), event)
        for one in made.updates:
            self.runtime[one.container] = one.pin.over(self.runtime[one.container])

        pins, parts = policy.pins(made.state), policy.exclusive_parts(made.state)
        assert sum(map(len, parts.values())) == len(CpuSet.union(parts.values()))
        for key, spec in self.specs.items():
            assert self.runtime[key] == pins[key].over(self.runtime[key])
            assert pins[key].cpus or spec.preferences.preserve_cpus
            others = CpuSet.union(cpus for one, cpus in parts.items() if one != key)
            assert not pins[key].cpus & others
        self.forget_all()
        self.synchronize(self.present().values())

    @rule(instances=st.integers(1, 2), limit=st.integers(0, 1))
    def pass_by_pools_of_pods(self, instances: int, limit: int) -> None:
        """The document asks for pools of pods, and again for the former policy."""
        machine = self.policy.machine
        text = _PODPOOLS.format(instances=instances, limit=limit)
        try:
            policy = build_policy(parse_config(text), machine)
        except BadSetting:
            assert len(machine.online - machine.isolated) <= instances
            return
        self.pass_by(policy)

    @rule(count=st.integers(0, 2))
    def pass_by_lists_of_cpus(self, count: int) -> None:
        """The document asks for lists, and again for the former policy."""
        machine = self.policy.machine
        lists = [{"cpus": str(cpu)} for cpu in machine.online.lowest(count)]
        pools = json.dumps([{"name": "dpdk", "exclusive": True, "cpuLists": lists}])
        text = _STATIC_POOLS.format(pools=pools)
        try:
            policy = build_policy(parse_config(text), machine)
        except BadSetting:
            assert len(machine.online) <= count
            return
        self.pass_by(policy)

    def pass_by(self, policy: Any) -> None:
        """Switch to a policy that pins all containers, and back."""
        event = Synchronized(tuple(self.present().values()))
        made = policy.decide(policy.start(), event)
        for one in made.updates:
            self.runtime[one.container] = one.pin.over(self.runtime[one.container])

        pins = policy.pins(made.state)
        for key, spec in self.specs.items():
            assert self.runtime[key] == pins[key].over(self.runtime[key])
            assert bool(pins[key].cpus) != spec.preferences.preserve_cpus
        self.forget_all()
        self.synchronize(self.present().values())

    def switch(self, conditions: policy_node.Conditions) -> None:
        """Continue under another policy, without the state of the old one."""
        old, pins = self.policy, dict(self.runtime)
        self.rebuild(conditions)
        if self.policy.kind != old.kind:
            self.forget_all()
        self.synchronize(self.present().values())

        keeps_memory = isinstance(self.policy, BalloonsPolicy)
        for key, pin in pins.items():
            now = self.runtime[key]
            assert now == now.over(pin)
            assert pin.mems <= now.mems or not keeps_memory

    @invariant()
    def all_containers_are_in_one_place(self) -> None:
        """Each container is in exactly one place: the policy's own checks pass."""
        assert self.state.ledger.entries.keys() == self.specs.keys()
        if isinstance(self.policy, BalloonsPolicy):
            check_disjoint(self.policy, self.state)
            check_balloons(self.policy, self.state)
            check_numbers(self.policy, self.state)
        else:
            check_exclusive(self.policy, self.state)
            check_capacity(self.policy, self.state)
        check_memory(self.policy.machine, self.state.memory)

    @invariant()
    def nothing_is_unpinned(self) -> None:
        """Once pinned, a container stays pinned unless it is excluded."""
        wanted = self.wanted()
        assert self.policy.pins(self.state) == wanted
        for key, pin in wanted.items():
            assert pin.cpus or self.is_preserved(self.specs[key])
            assert self.runtime[key] == pin.over(self.runtime[key])

    def is_preserved(self, spec: ContainerSpec) -> bool:
        if isinstance(self.policy, BalloonsPolicy):
            return is_preserved(spec, self.policy)
        return spec.preferences.preserve_cpus


TestPoliciesGiveWay = PoliciesGiveWay.TestCase
TestPoliciesGiveWay.settings = steps(20)
