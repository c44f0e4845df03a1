"""A node under the topology-aware policy, with a runtime that knows what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from hypothesis.stateful import RuleBasedStateMachine, initialize

from nri_resmgr.policy.decision import Decision, Rule
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodCreated,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import PolicyError
from tests.laws.topology_aware_draws import MACHINES, SETTINGS, machine_of, settings_for
from tests.laws.topology_aware_recount import pins_by_recount, snapshot

State = TopologyAwareState


@attrs.frozen(kw_only=True)
class Conditions:
    """What a policy is made of.

    Attributes:
        machine: The words of its machine.
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


@attrs.frozen
class Episode:
    """One event of a history; *forgotten* is whether the state was lost before it."""

    conditions: Conditions
    event: Event
    forgotten: bool
    outcome: object


class Node(RuleBasedStateMachine):
    """Hands events to the policy, and its answers to the runtime."""

    conditions: Conditions
    policy: TopologyAwarePolicy
    state: State

    @initialize(machines=MACHINES, settings=SETTINGS)
    def begin(self, machines: tuple[str, ...], settings: Mapping[str, Any]) -> None:
        """Take a node and its settings."""
        self.machines = machines
        self.rebuild(Conditions(machine=machines[0], **settings))
        self.state = self.policy.start()
        self.runtime: dict[str, Pin] = {}
        self.believed: dict[str, Pin] = {}  # what the policy can rely on
        self.specs: dict[str, ContainerSpec] = {}
        self.why: dict[str, Rule] = {}
        self.updates_of_last = 0
        self.history: list[Episode] = []
        self.forgotten = False

    def rebuild(self, conditions: Conditions) -> None:
        """Make a policy, to which the state is to be handed yet."""
        self.conditions, self.policy = conditions, conditions.policy()

    def wanted(self) -> dict[str, Pin]:
        return pins_by_recount(self.policy, self.state)

    @property
    def settled(self) -> bool:
        """Whether the runtime holds what should hold."""
        wanted = self.wanted()
        return not any(wanted[key].since(pin) for key, pin in self.runtime.items())

    def present(self) -> dict[str, ContainerSpec]:
        """Return what the runtime would tell of what runs."""
        return {
            key: attrs.evolve(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }

    def decide(self, event: Event) -> Decision[State] | None:
        """Put an event to the policy; None if it refuses, and nothing changed."""
        before, old = self.state, snapshot(self.state)
        decision, outcome = _asked(self.policy, before, event)
        assert snapshot(before) == old
        episode = Episode(self.conditions, event, self.forgotten, outcome)
        self.history.append(episode)
        self.forgotten = False
        if decision is not None:
            self.state = decision.state
            self._check_reasons(decision)
            if not isinstance(event, Synchronized):
                self._check_zones(before, event)
        return decision

    def decided(self, event: Event) -> Decision[State]:
        """Put an event to the policy that it cannot refuse."""
        decision = self.decide(event)
        assert decision is not None
        return decision

    def take(self, decision: Decision[State], own: str = "") -> None:
        """Tell the runtime; each whose values change is told just that, once."""
        news = {
            key: pin.since(self.believed[key])
            for key, pin in self.wanted().items()
            if key != own
        }
        assert {one.container: one.pin for one in decision.updates} == {
            key: pin for key, pin in news.items() if pin
        }
        assert len({one.container for one in decision.updates}) == len(decision.updates)
        for update in decision.updates:
            self.tell(update.container, update.pin)
        self.updates_of_last = len(decision.updates)
        assert self.settled
        assert not (self.specs and self.state.unsettled)

    def tell(self, container: str, pin: Pin) -> None:
        self.runtime[container] = pin.over(self.runtime[container])
        self.believed[container] = pin.over(self.believed[container])

    def take_silent(self, decision: Decision[State]) -> None:
        """Take an answer that has no room for updates."""
        assert (decision.updates, decision.pin) == ((), NO_PIN)
        self.updates_of_last = 0

    def synchronize(self, found: Iterable[ContainerSpec]) -> None:
        """Say what runs; whatever was known before is history."""
        self.specs = {one.id: one for one in found}
        self.runtime = {key: one.present for key, one in self.specs.items()}
        self.believed = dict(self.runtime)
        decision = self.decided(Synchronized(tuple(self.specs.values())))
        self.why = {one.container: one.rule for one in decision.reasons}
        assert self.why.keys() == self.specs.keys()
        self.take(decision)

    def forget_all(self) -> None:
        """Start the policy anew."""
        self.state, self.forgotten = self.policy.start(), True

    def drop(self, containers: Iterable[str]) -> None:
        for key in containers:
            for table in (self.specs, self.runtime, self.believed, self.why):
                table.pop(key, None)

    def lose(self, containers: Iterable[str]) -> None:
        """Containers vanish, with all that was told in the answer to their creation."""
        gone = [key for key in containers if key in self.specs]
        self.drop(gone)
        if gone:
            self.believed = dict.fromkeys(self.believed, NO_PIN)

    def teardown(self) -> None:
        """The same history once more, on a machine of its own, leads to the same."""
        made: dict[int, TopologyAwarePolicy] = {}
        state: State | None = None
        for one in getattr(self, "history", ()):
            key = id(one.conditions)
            policy = made.get(key) or one.conditions.policy(afresh=True)
            made[key] = policy
            if state is None or one.forgotten:
                state = policy.start()
            decision, outcome = _asked(policy, state, one.event)
            assert outcome == one.outcome
            state = state if decision is None else decision.state
        if state is not None and not self.forgotten:
            assert snapshot(state) == snapshot(self.state)

    def _check_reasons(self, decision: Decision[State]) -> None:
        """A rule for each, and the pool wherever there is one."""
        pools = {pool.name for pool in self.policy.tree.pools}
        grants = decision.state.grants
        for reason in decision.reasons:
            assert reason.rule in Rule
            if reason.container in grants:
                mine = self.policy.tree.pools[grants[reason.container].pool]
                assert reason.pool in ("", mine.name)
                assert reason.pool or reason.rule is Rule.COLD_START_ENDED
            assert {name for name, _ in reason.tried} <= pools

    def _check_zones(self, before: State, event: Event) -> None:
        """Nobody who runs loses memory nodes."""
        fresh = event.spec.id if isinstance(event, Created) else ""
        for key, grant in self.state.memory.grants.items():
            if key != fresh and key in before.ledger:
                assert before.memory.zone_of(key) <= grant.zone, key


def _asked(
    policy: TopologyAwarePolicy, state: State, event: Event
) -> tuple[Decision[State] | None, object]:
    try:
        decision = policy.decide(state, event)
    except PolicyError as refusal:
        assert isinstance(event, PodCreated | Created | Updated)
        return None, str(refusal)
    told = decision.reasons, decision.pin, decision.updates
    return decision, (*told, decision.scheduling, decision.timers)
