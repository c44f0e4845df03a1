"""Histories of a node under any policy, and new processes of the daemon in them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from random import Random
from typing import Any, Final

import msgspec

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.plugin.catch_up import catch_up, would_move
from nri_resmgr.app.plugin.pod_overhead import PodOverheads
from nri_resmgr.app.plugin.present_pins import with_present_pins
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Event,
    Pin,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import (
    NO_CPUS,
    NO_NODES,
    ONE_CPU,
    CpuSet,
    NodeSet,
    PolicyError,
    QosClass,
)
from tests.laws.reborn import Checkpoints, restored, shuffled

_DOCUMENT: Final = "apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
FELL_BACK: Final = (Rule.FELL_BACK, Rule.RESERVED_FULL)
_UNCHANGED: Final = (Rule.KEPT, Rule.UNCHANGED)


@lru_cache(256)
def policy_of(kind: str, spec: str, machine: str) -> ViewedPolicy[Any]:
    """Build the policy of a document, for a machine by its spec."""
    text = _DOCUMENT.format(kind=kind, spec=spec)
    return build_policy(parse_config(text), parse_spec(machine))


class Restart(msgspec.Struct, frozen=True):
    """What a new process makes of a node.

    Attributes:
        pins: The pins of all containers afterwards.
        refused: Containers whose last resize it refuses, although it was granted.
    """

    state: Any
    pins: dict[str, Pin]
    why: dict[str, Rule]
    refused: tuple[str, ...]


class History:
    """A node whose runtime applies each decision, and reports what it applied.

    Attributes:
        machines: The specs of the machine, as parts of it come and go.
        there: The containers with what they asked for last.
        pins: What each runs on.
        had: The memory nodes that each has had so far.
        record: What the runtime reports.
        by_partition: Whether the kernel keeps others off exclusive CPUs, so that the
            record of these others is not brought in line.
        is_behind: Whether no record is, but at a container's own events; a new process
            knows what the kernel has.
        why: The rule of the last decision on each that changed something.
        checkpoints: One for each decision.
        past: The policy and its state when each was written.
        events: What happened, in a line each.
    """

    def __init__(
        self,
        policy: ViewedPolicy[Any],
        machines: tuple[str, ...] = (),
        *,
        by_partition: bool = False,
        is_behind: bool = False,
    ) -> None:
        self.by_partition, self.is_behind = by_partition, is_behind
        self.machines = machines
        self.policy, self.state = policy, policy.start()
        self.there: dict[str, ContainerSpec] = {}
        self.pins: dict[str, Pin] = {}
        self.had: dict[str, NodeSet] = {}
        self.record: dict[str, Pin] = {}
        self.why: dict[str, Rule] = {}
        self.events: list[str] = []
        self._begin_checkpoints()

    @property
    def crowded(self) -> bool:
        """Whether some container has less than it asked for."""
        return any(self.why[key] in FELL_BACK for key in self.there)

    @property
    def has_lookalike(self) -> bool:
        """Whether one that fell back runs on as many CPUs as if it owned them."""
        return any(
            self.why[key] in FELL_BACK
            and one.qos is QosClass.GUARANTEED
            and one.request == len(self.pins[key].cpus) * ONE_CPU
            for key, one in self.there.items()
        )

    def exclusive(self) -> dict[str, CpuSet]:
        """Return the CPUs of those that share none, and have what they asked for."""
        found = self.policy.exclusive_cpus(self.state)
        return {
            key: cpus for key, cpus in found.items() if self.why[key] not in FELL_BACK
        }

    def moved(self, after: Mapping[str, Pin], decisions: int) -> dict[str, Pin]:
        """Return the pins *after* a restart of those that it leaves not as they were.

        Memory nodes that went, and may be there again, it may grant again: they look
        like a decision that is not in force yet. So do CPUs that came within the lost
        *decisions*, to the pool that the checkpoint has: it has more CPUs now. One with
        less memory than it asks for may get the rest.
        """
        moved = {}
        for key, pin in after.items():
            stays, most = self.pins[key], self.had[key]
            if self._lacks_memory(key):
                most |= pin.mems
            if pin.mems <= most and not pin.mems < stays.mems:
                stays = msgspec.structs.replace(stays, mems=pin.mems)
            if stays.cpus < pin.cpus <= stays.cpus | self._came_since(decisions):
                stays = msgspec.structs.replace(stays, cpus=pin.cpus)
            if pin != stays:
                moved[key] = pin
        return moved

    def _lacks_memory(self, container: str) -> bool:
        memory = getattr(self.state, "memory", None)
        if memory is None or container not in memory:
            return False
        granted: int = memory.grants[container].request.size
        return granted < self.there[container].memory_request

    def _came_since(self, decisions: int) -> CpuSet:
        """Return the CPUs of pools that were in none before some decisions."""
        before = _in_pools(*self.past[-1 - min(decisions, len(self.past) - 1)])
        return _in_pools(self.policy, self.state) - before if before else NO_CPUS

    def create(self, spec: ContainerSpec) -> None:
        """Have a container come, if the policy can place it."""
        with suppress(PolicyError):
            decision = self._decide(Created(spec))
            self.there[spec.id] = spec
            self.pins[spec.id] = self.record[spec.id] = decision.pin
            self.had[spec.id] = decision.pin.mems

    def create_unseen(self, spec: ContainerSpec) -> None:
        """Have a container come while no daemon runs: it is pinned to nothing."""
        self.there[spec.id] = spec
        self.pins[spec.id] = self.record[spec.id] = NO_PIN
        self.had[spec.id] = NO_NODES
        self.events.append(f"unseen: {_what(spec)}")

    def resize(self, container: str, amounts: Mapping[str, Any]) -> None:
        """Have a container ask for other amounts, if the policy can grant them."""
        spec = msgspec.structs.replace(self.there[container], **amounts)
        with suppress(PolicyError):
            decision = self._decide(Updated(spec))
            self.there[container] = spec
            self._pin_by_runtime(container, decision.pin)

    def stop(self, container: str) -> None:
        """Have a container go."""
        for table in (self.there, self.pins, self.had, self.record):
            del table[container]
        self._decide(Stopped(container))

    def switch(self, policy: ViewedPolicy[Any]) -> None:
        """Go on under another policy, or on another machine."""
        before = self.state if policy.kind == self.policy.kind else policy.start()
        self.policy, self.state = policy, before
        # It knows where they run, whatever the runtime has recorded.
        known = self.pins if self.is_behind else self.record
        self._decide(Synchronized(self._present(known)))

    def die(self, decisions: int, order: Random | None = None) -> None:
        """Go on in a new process; see `restart`."""
        after = self.restart(decisions, order)
        self.state = after.state
        for key, pin in after.pins.items():
            if pin != self.pins[key]:
                self._pin_by_runtime(key, pin)
        self._note(after.why)
        self._begin_checkpoints()  # a new process writes one at once

    def restart(self, decisions: int, order: Random | None = None) -> Restart:
        """Start a new process, whose checkpoint lacks the last *decisions*.

        Its records are in another *order* than they were written in, if given.
        """
        text = self.checkpoints.aged(decisions)
        state = restored(shuffled(text, order) if order else text, self.policy)
        pins, why, refused = dict(self.pins), dict[str, Rule](), list[str]()

        def handle(event: Event) -> Decision[Any]:
            nonlocal state
            try:
                decision = self.policy.decide(state, event)
            except PolicyError:
                assert isinstance(event, Updated)
                refused.append(event.spec.id)
                raise
            state = decision.state
            why.update({one.container: one.rule for one in decision.reasons})
            return decision

        # The order in which a runtime lists them says nothing.
        present = self._present(self.record)[:: -1 if decisions % 2 else 1]
        pods = frozenset(one.pod for one in present)
        known = state.ledger.entries.get
        if self.is_behind:
            whole = parse_spec(_whole(self.machines[0]))
            present = tuple(with_present_pins(present, known, self.pins, whole))
        listed = Synchronized(present, pods)
        moved = partial(would_move, self.policy, state)
        for one in catch_up(listed, known, moved, handle, PodOverheads()):
            pins[one.container] = one.pin.over(pins[one.container])
        return Restart(state, pins, why, tuple(refused))

    def _present(self, pins: Mapping[str, Pin]) -> tuple[ContainerSpec, ...]:
        return tuple(
            msgspec.structs.replace(one, present=pins[key])
            for key, one in self.there.items()
        )

    def _decide(self, event: Event) -> Decision[Any]:
        decision = self.policy.decide(self.state, event)
        self.events.append(_line_of(event, decision))
        self.state = decision.state
        self._note({one.container: one.rule for one in decision.reasons})
        self._note_checkpoint()
        for update in decision.updates:
            self._apply(update.container, update.pin)
        for key in self.record:
            self._follow(key)  # a partition may have ended
        return decision

    def _begin_checkpoints(self) -> None:
        self.checkpoints = Checkpoints()
        self.past: list[tuple[ViewedPolicy[Any], Any]] = []
        self._note_checkpoint()

    def _note_checkpoint(self) -> None:
        self.checkpoints.note(self.policy, self.state)
        self.past.append((self.policy, self.state))

    def _note(self, why: Mapping[str, Rule]) -> None:
        """Note rules: a container that fell back and stays there has still less."""
        for key, rule in why.items():
            if rule not in _UNCHANGED or self.why.get(key) not in FELL_BACK:
                self.why[key] = rule

    def _pin_by_runtime(self, container: str, pin: Pin) -> None:
        """Have the runtime itself pin a container, in the reply to its request."""
        self._apply(container, pin)
        self.record[container] = self.pins[container]

    def _apply(self, container: str, pin: Pin) -> None:
        self.pins[container] = pin.over(self.pins[container])
        self.had[container] |= pin.mems
        self._follow(container)

    def _follow(self, container: str) -> None:
        """Bring the runtime's record in line, where no partition holds instead."""
        if self.is_behind:
            return
        now = self.pins[container]
        kept_off = CpuSet.union(self.policy.exclusive_cpus(self.state).values())
        recorded = self.record[container]
        if self.by_partition and recorded.cpus - kept_off == now.cpus:
            now = msgspec.structs.replace(now, cpus=recorded.cpus)
        self.record[container] = now


def _whole(machine: str) -> str:
    """Return the spec of a machine with all of its CPUs: some may come later."""
    return " ".join(one for one in machine.split() if not one.startswith("offline="))


def _in_pools(policy: ViewedPolicy[Any], state: Any) -> CpuSet:
    return CpuSet.union(one.cpus for one in policy.pools(state))


def _line_of(event: Event, decision: Decision[Any]) -> str:
    """Say in a line what happened and what came of it."""
    spec = getattr(event, "spec", None)
    what = getattr(event, "id", "")
    if spec is not None:
        what = _what(spec)
    rules = [(one.container, one.rule.value, str(one.cpus)) for one in decision.reasons]
    pins = [(one.container, str(one.pin.cpus)) for one in decision.updates]
    return f"{type(event).__name__} {what}: {rules}, updates {pins}"


def _what(spec: ContainerSpec) -> str:
    """Say which container it is, and what it asks for."""
    gib = spec.memory_request >> 30
    return f"{spec.id} {spec.qos} {spec.request}m {gib}Gi"
