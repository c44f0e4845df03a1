"""A node under the topology-aware policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis.stateful import initialize

from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Pin
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.topology.synthetic import parse_spec
from tests.laws import policy_node
from tests.laws.topology_aware_draws import MACHINES, SETTINGS, machine_of, settings_for
from tests.laws.topology_aware_recount import pins_by_recount, snapshot

State = TopologyAwareState


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a policy.

    Attributes:
        machine: The spec of its machine.
        reserved: How many CPUs are reserved.
        withheld: How many CPUs are not available.
        options: Further settings.
    """

    machine: str
    reserved: int
    withheld: int
    options: Mapping[str, Any]

    def policy(self, *, afresh: bool = False) -> TopologyAwarePolicy:
        machine = parse_spec(self.machine) if afresh else machine_of(self.machine)
        fit = settings_for(machine, self.reserved, self.withheld, self.options)
        return TopologyAwarePolicy(machine, fit)

    def pins(self, policy: TopologyAwarePolicy, state: State) -> dict[str, Pin]:
        return pins_by_recount(policy, state)

    def snapshot(self, state: State) -> Mapping[str, Any]:
        return snapshot(state)


class Node(policy_node.Node):
    """Starts with any conditions, and checks the pools that decisions name."""

    @initialize(machines=MACHINES, settings=SETTINGS)
    def begin(self, machines: tuple[str, ...], settings: Mapping[str, Any]) -> None:
        """Start with a node and its settings."""
        self.machines = machines
        self.begin_with(Conditions(machine=machines[0], **settings))

    def check(self, decision: Decision[State]) -> None:
        """Check that each reason has a rule and the container's pool, if any."""
        super().check(decision)
        pools = {pool.name for pool in self.policy.tree.pools}
        grants = decision.state.grants
        uses = self.policy.pools(decision.state)
        pool_of = {key: one.name for one in uses for key in one.containers}
        for place in self.policy.reservations(decision.state):
            (pool_of[place.spec.id],) = {
                pool.name
                for pool in self.policy.tree.pools
                if pool.id == grants[place.spec.id].pool
            }
            assert place.cpus == grants[place.spec.id].cpus
        for reason in decision.reasons:
            if reason.container in grants:
                # The same pool as in `status`; preserved CPUs are in none.
                pool = pool_of.get(reason.container, "")
                ended = reason.rule is Rule.COLD_START_ENDED
                assert reason.pool == pool or (ended and not reason.pool)
            assert {name for name, _ in reason.tried} <= pools
