"""A node under some policy, with a runtime that applies what it receives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import permutations
from typing import Any, Protocol

import msgspec
from hypothesis.stateful import RuleBasedStateMachine

from nri_resmgr.app.plugin.catch_up import catch_up, would_move
from nri_resmgr.app.plugin.pod_overhead import PodOverheads
from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.decision import Decision, Policy
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
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import PolicyError
from tests.laws.reborn import Checkpoints, reborn, restored

PODS = ("p", "q")

_OF_OTHERS = (Rule.NOW_FITS, Rule.FELL_BACK)


class Conditions(Protocol):
    """The parameters of a policy, and a recount of its states from scratch."""

    def policy(self, *, afresh: bool = False) -> Policy[Any]:
        """Make the policy; *afresh* without any cached part."""

    def pins(self, policy: Any, state: Any) -> dict[str, Pin]:
        """Return the pin of every container."""

    def snapshot(self, state: Any) -> Mapping[str, Any]:
        """Copy a state into values that cannot change later."""


class Episode(msgspec.Struct, frozen=True):
    """One event of a history.

    Attributes:
        start: The checkpoint that a new process began with before it, which may be
            empty; None where none began.
    """

    conditions: Conditions
    event: Event
    start: str | None
    outcome: object


class _Refused(PolicyError):
    """The policy refused a resize that the runtime has."""


class Node(RuleBasedStateMachine):
    """Passes events to the policy, and its replies to the runtime."""

    conditions: Any
    policy: Any
    state: Any

    def begin_with(self, conditions: Conditions) -> None:
        """Start on a node where nothing runs."""
        self.rebuild(conditions)
        self.first, self.state = conditions, self.policy.start()
        self.runtime: dict[str, Pin] = {}
        self.believed: dict[str, Pin] = {}  # what the policy can rely on
        self.specs: dict[str, ContainerSpec] = {}
        self.why: dict[str, Rule] = {}
        self.updates_of_last = 0
        self.history: list[Episode] = []
        self.draft, self.made_by = Draft(), self.policy
        self.checkpoints = Checkpoints()
        self.checkpoints.note(self.policy, self.state)
        self.start_of_process: str | None = None

    def rebuild(self, conditions: Conditions) -> None:
        """Make a policy; the state is passed to it later."""
        self.conditions, self.policy = conditions, conditions.policy()

    def wanted(self) -> dict[str, Pin]:
        found: dict[str, Pin] = self.conditions.pins(self.policy, self.state)
        return found

    @property
    def settled(self) -> bool:
        """Whether the runtime has all desired pins."""
        wanted = self.wanted()
        return not any(wanted[key].since(pin) for key, pin in self.runtime.items())

    def present(self) -> dict[str, ContainerSpec]:
        """Return the running containers as the runtime reports them."""
        return {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }

    def decide(self, event: Event) -> Decision[Any] | None:
        """Let the policy decide an event; None if it refuses, and nothing changed."""
        before = self.state = self.reborn()
        old = self.conditions.snapshot(before)
        decision, outcome = _asked(self.policy, before, event)
        assert self.conditions.snapshot(before) == old
        episode = Episode(self.conditions, event, self.start_of_process, outcome)
        self.history.append(episode)
        self.start_of_process = None
        if decision is not None:
            self.state, self.made_by = decision.state, self.policy
            self.checkpoints.note(self.policy, self.state)
            self.check(decision)
            if not isinstance(event, Synchronized):
                self._check_zones(before, event)
        return decision

    def reborn(self) -> Any:
        """Return the state after a checkpoint and its restoration.

        The history in `teardown` goes on with states as they were, and has to end
        with the same.
        """
        if self.made_by is not self.policy:
            return self.state  # made with other pools or balloons
        return reborn(self.policy, self.state, self.draft)

    def check(self, decision: Decision[Any]) -> None:
        """Check the reasons of a decision."""
        assert all(reason.rule in Rule for reason in decision.reasons)
        # Those that had fallen back get more beside the container of the event.
        for reason in decision.reasons:
            if reason.container in self.why and reason.rule in _OF_OTHERS:
                self.why[reason.container] = reason.rule

    def decided(self, event: Event) -> Decision[Any]:
        """Let the policy decide an event that it cannot refuse."""
        decision = self.decide(event)
        assert decision is not None
        return decision

    def update_to(self, spec: ContainerSpec) -> None:
        """Change the request of a container, which the policy may refuse."""
        key, before = spec.id, self.specs.get(spec.id)
        decision = self.decide(Updated(spec))
        if decision is None:
            assert before is not None
            return
        if before is not None:
            _check_direction(before, spec, decision.reasons[0].rule)
        self.specs[key] = spec
        if (found := decision.reasons[0].rule) is not Rule.UNCHANGED:
            self.why[key] = found
        assert decision.pin == self.wanted()[key]
        self.apply(key, decision.pin)
        self.take(decision, own=key)

    def take(self, decision: Decision[Any], own: str = "") -> None:
        """Apply the updates: at most one per container, of changed values only."""
        changes = {
            key: pin.since(self.believed[key])
            for key, pin in self.wanted().items()
            if key != own
        }
        assert {one.container: one.pin for one in decision.updates} == {
            key: pin for key, pin in changes.items() if pin
        }
        assert len({one.container for one in decision.updates}) == len(decision.updates)
        for update in decision.updates:
            self.apply(update.container, update.pin)
        self.updates_of_last = len(decision.updates)
        assert self.settled
        assert not (self.specs and self.state.unsettled)

    def apply(self, container: str, pin: Pin) -> None:
        self.runtime[container] = pin.over(self.runtime[container])
        self.believed[container] = pin.over(self.believed[container])

    def take_silent(self, decision: Decision[Any]) -> None:
        """Check an answer that cannot carry updates."""
        assert (decision.updates, decision.pin) == ((), NO_PIN)
        self.updates_of_last = 0

    def synchronize(
        self, found: Iterable[ContainerSpec], pods: AbstractSet[str] | None = None
    ) -> None:
        """Synchronize: replace all containers by those in *found*."""
        there = {one.id: one for one in found}
        self.specs = slots_won(there)
        self.runtime = {key: one.present for key, one in self.specs.items()}
        self.believed = dict(self.runtime)
        living = None if pods is None else frozenset(pods)
        decision = self.decided(Synchronized(tuple(there.values()), living))
        self.why = {one.container: one.rule for one in decision.reasons}
        assert self.why.keys() == self.specs.keys()
        self.take(decision)

    def forget_all(self) -> None:
        """Start the policy anew."""
        self.state, self.start_of_process = self.policy.start(), ""

    def kill(self, decisions: int) -> bool:
        """Start a new process, with a checkpoint from before some decisions.

        Returns:
            Whether all have what they ask for, as far as that was granted before.
        """
        text = self.checkpoints.aged(decisions)
        self.state, self.start_of_process = restored(text, self.policy), text
        self.made_by = self.policy
        found = tuple(self.present().values())
        refused: list[str] = []
        self.specs = slots_won({one.id: one for one in found})
        self.believed = dict(self.runtime)

        def handle(event: Event) -> Decision[Any]:
            decision = self.decide(event)
            if decision is None:
                assert isinstance(event, Updated)
                refused.append(event.spec.id)
                raise _Refused
            self.why |= {one.container: one.rule for one in decision.reasons}
            return decision

        known, overheads = self.state.ledger.entries.get, PodOverheads()
        listed = Synchronized(found, frozenset(PODS))
        moved = partial(would_move, self.policy, self.state)
        updates = catch_up(listed, known, moved, handle, overheads)
        for one in updates:
            self.apply(one.container, one.pin)
        self.updates_of_last = len(updates)
        for key in refused:  # it keeps what it had, or less
            self.specs[key] = self.state.ledger.spec_of(key)
        return not refused

    def drop(self, containers: Iterable[str]) -> None:
        for key in containers:
            for table in (self.specs, self.runtime, self.believed, self.why):
                table.pop(key, None)

    def lose(self, containers: Iterable[str]) -> None:
        """Remove containers, with the updates in the replies to their creation."""
        gone = [key for key in containers if key in self.specs]
        self.drop(gone)
        if gone:
            self.believed = dict.fromkeys(self.believed, NO_PIN)

    def teardown(self) -> None:
        """Check that the same history on a new machine ends with the same state."""
        made: dict[int, Policy[Any]] = {}
        if not hasattr(self, "history"):
            return
        state = self.first.policy(afresh=True).start()
        for one in self.history:
            key = id(one.conditions)
            policy = made.get(key) or one.conditions.policy(afresh=True)
            made[key] = policy
            if one.start is not None:
                state = restored(one.start, policy) if one.start else policy.start()
            decision, outcome = _asked(policy, state, one.event)
            assert outcome == one.outcome
            state = state if decision is None else decision.state
        if self.start_of_process is None:
            counted = self.conditions.snapshot
            assert counted(state) == counted(self.state)

    def _check_zones(self, before: Any, event: Event) -> None:
        """Check that no running container loses memory nodes."""
        fresh = event.spec.id if isinstance(event, Created) else ""
        for key, grant in self.state.memory.grants.items():
            if key != fresh and key in before.memory and key in before.ledger:
                assert before.memory.zone_of(key) <= grant.zone, key


def slots_won(found: Mapping[str, ContainerSpec]) -> dict[str, ContainerSpec]:
    """Clear the slots of containers that a younger one has, too."""
    won = dict(found)
    for (a, one), (b, other) in permutations(found.items(), 2):
        same = one.slot and (one.pod, one.slot) == (other.pod, other.slot)
        if same and (one.created, a) < (other.created, b):
            won[a] = msgspec.structs.replace(one, slot="")
    return won


def _asked(
    policy: Policy[Any], state: Any, event: Event
) -> tuple[Decision[Any] | None, object]:
    try:
        decision = policy.decide(state, event)
    except PolicyError as refusal:
        assert isinstance(event, PodCreated | Created | Updated)
        return None, str(refusal)
    outcome = decision.reasons, decision.pin, decision.updates
    return decision, (*outcome, decision.scheduling, decision.timers)


def _check_direction(before: ContainerSpec, after: ContainerSpec, rule: Rule) -> None:
    """Check that what shrank in place asks for less of something, and the other way."""
    cpus = after.request - before.request
    memory = _memory(after) - _memory(before)
    assert rule is not Rule.SHRUNK_IN_PLACE or min(cpus, memory) < 0
    assert rule is not Rule.GROWN_IN_PLACE or max(cpus, memory) > 0


def _memory(spec: ContainerSpec) -> int:
    return spec.memory_request or spec.memory_limit or 0
