"""A node under the balloons policy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.laws import policy_node
from tests.laws.balloons_draws import documents, policy_for
from tests.laws.balloons_recount import cpus_of, pins_by_recount, snapshot
from tests.laws.topology_aware_draws import MACHINES, machine_of

State = BalloonsState

PLAIN: Final = {"reservedResources": {"cpu": "1"}, "balloonTypes": []}
"""A document that fits every machine."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The parameters of a policy: the spec of a machine, and a document."""

    machine: str
    spec: Mapping[str, Any]

    @cached_property
    def made(self) -> BalloonsPolicy | None:
        return policy_for(self.spec, machine_of(self.machine))

    @property
    def fits(self) -> bool:
        return self.made is not None

    def policy(self, *, afresh: bool = False) -> BalloonsPolicy:
        machine = parse_spec(self.machine)
        policy = policy_for(self.spec, machine) if afresh else self.made
        assert policy is not None
        return policy

    def pins(self, policy: BalloonsPolicy, state: State) -> dict[str, Pin]:
        return pins_by_recount(policy, state)

    def snapshot(self, state: State) -> Mapping[str, Any]:
        return snapshot(state)


class Node(policy_node.Node):
    """Starts with any conditions, and checks the balloons that decisions name."""

    @initialize(machines=MACHINES, spec=st.lists(documents(), min_size=2, max_size=2))
    def begin(self, machines: tuple[str, ...], spec: list[dict[str, Any]]) -> None:
        """Start with a node, and the first document that fits it."""
        self.machines = machines
        choices = [Conditions(machine=machines[0], spec=one) for one in (*spec, PLAIN)]
        self.begin_with(next(one for one in choices if one.fits))

    def check(self, decision: Decision[State]) -> None:
        """Check that each reason has a rule and the container's balloon, if any."""
        super().check(decision)
        memberships = decision.state.memberships
        for reason in decision.reasons:
            if reason.container in memberships:
                assert reason.pool == memberships[reason.container].balloon

    def check_found_again(self, there: Mapping[str, ContainerSpec]) -> None:
        """Check that containers keep their CPUs, but for shared idle CPUs."""
        settings = self.policy.settings
        shares = any(kind.share_idle for kind in settings.types)
        for key, spec in there.items() if settings.pin_cpus else ():
            if name := self.state.memberships[key].balloon:
                assert shares or self.runtime[key].cpus == spec.present.cpus
                cores = map(self.policy.machine.core_of, spec.present.cpus)
                near = CpuSet.union(core.cpus for core in cores)
                assert cpus_of(self.state.balloons[name], self.state) <= near


def reserved_exactly(conditions: Conditions) -> CpuSet:
    """Return the CPUs that reserved containers must not leave, if there are any."""
    cpus = conditions.spec["reservedResources"]["cpu"]
    if not conditions.spec.get("reservedExact") or "cpuset:" not in cpus:
        return CpuSet()
    return CpuSet.parse(cpus.removeprefix("cpuset:"))
