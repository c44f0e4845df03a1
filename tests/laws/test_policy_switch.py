"""Containers stay pinned, and in one place, when another policy is configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.events import ContainerSpec, Created, Stopped
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
    def everybody_is_in_one_place(self) -> None:
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
    def nobody_is_unpinned(self) -> None:
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
TestPoliciesGiveWay.settings = settings(stateful_step_count=20, deadline=None)
