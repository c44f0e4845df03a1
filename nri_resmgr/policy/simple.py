"""The base of small policies, which place one container after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import Ledger, oldest_first
from nri_resmgr.values import CpuSet, PolicyError


class SimpleState(msgspec.Struct, frozen=True):
    """The state of a `SimplePolicy`; a policy derives a class with more fields.

    Attributes:
        ledger: All containers, with the pins last sent to the runtime. The base
            class keeps it.
    """

    ledger: Ledger = msgspec.field(default_factory=Ledger.of)


StateT = TypeVar("StateT", bound=SimpleState)
_StateT = TypeVar("_StateT", bound=SimpleState)


class Placed(msgspec.Struct, Generic[_StateT], frozen=True):
    """The placement of a container.

    Attributes:
        state: The state with it.
        rule: The rule that led to it, for the log and for `explain`.
        detail: Further explanation.
    """

    state: _StateT
    rule: Rule
    detail: str = ""


class SimplePolicy(PolicyBase[StateT], ABC, Generic[StateT]):
    """A policy of four methods: `start`, `place`, `vacate` and `pins`.

    They read and replace the fields that the policy adds to the state; this class
    maintains the ledger. Every event computes all pins and sends those that changed:
    correct for any policy, and fast enough for hundreds of containers.
    """

    @abstractmethod
    def start(self) -> StateT:
        """Return the state of a node without containers."""

    @abstractmethod
    def place(
        self, state: StateT, spec: ContainerSpec, earlier: CpuSet
    ) -> Placed[StateT]:
        """Find a place for a container that is in the ledger and has none.

        Args:
            state: The state with all other containers.
            spec: The container.
            earlier: Its CPUs before a restart, a new configuration or a change of its
                request, to be kept where they fit; empty for a new container. They
                may be illegal by now.

        Raises:
            PolicyError: The node cannot grant what it asks for. A running container
                then stays in the ledger without a place.
        """

    @abstractmethod
    def vacate(self, state: StateT, container: str) -> StateT:
        """Free the place of a container, if it has one."""

    @abstractmethod
    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return the desired pin of every container in the ledger, by id."""

    def created(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Place a container that is about to be created."""
        left = self.lose(state, state.ledger.preceding(spec))
        return self._placed(left, spec, NO_PIN, CpuSet())

    def updated(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Place a container anew, with what it has as its earlier place."""
        if spec.id not in state.ledger:
            return self._placed(state, spec, spec.present, spec.present.cpus)
        earlier = self.pins(state)[spec.id].cpus
        left = self.vacate(state, spec.id)
        return self._placed(left, spec, state.ledger.last_sent_to(spec.id), earlier)

    def synchronized(self, state: StateT, event: Synchronized) -> Decision[StateT]:
        """Place all running containers: known ones first, then by age."""
        known, after = self.pins(state), self.start()
        ordered = oldest_first(event.specs)
        rules: dict[str, tuple[Rule, str]] = {}
        for spec in sorted(ordered, key=lambda one: one.id not in known):
            earlier = known.get(spec.id, spec.present).cpus
            there = _put(after, spec, spec.present)
            try:
                placed = self.place(there, spec, earlier)
            except PolicyError as refusal:
                # Running containers cannot be refused.
                placed = Placed(there, Rule.FELL_BACK, str(refusal))
            after = placed.state
            rules[spec.id] = placed.rule, placed.detail
        pins = self.pins(after)
        reasons = [
            self._reason(after, spec, pins[spec.id], *rules[spec.id])
            if pins[spec.id].cpus != spec.present.cpus
            else self._reason(after, spec, pins[spec.id], Rule.KEPT)
            for spec in ordered
        ]
        return self.settled(after, after, tuple(reasons))

    def settled(
        self,
        before: StateT,  # noqa: ARG002 - all pins are compared, not the changed ones
        after: StateT,
        reasons: tuple[Reason, ...],
    ) -> Decision[StateT]:
        """Decide on *after*, with updates for all whose pins differ from the ledger."""
        ledger, updates = after.ledger.settle(self.pins(after))
        return Decision(_with_ledger(after, ledger), reasons, updates=updates)

    def release(self, state: StateT, container: str) -> StateT:
        """Drop a known container that has stopped."""
        left = self.vacate(state, container)
        return _with_ledger(left, left.ledger.drop(container))

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop containers that are gone without having stopped."""
        if not containers:
            return state
        left = state
        for container in containers:
            left = self.release(left, container)
        return _with_ledger(left, left.ledger.forget_last_sent())

    def pool_of(self, state: StateT, container: str) -> str:
        """Return the name of a container's pool, if the policy shows any."""
        pools = self.pools(state)
        return next((one.name for one in pools if container in one.containers), "")

    def resources_of(self, state: StateT, container: str) -> Resources | None:
        """Return the resources that are published, if `publishes` says so.

        CPUs that no other container is pinned to are exclusive.
        """
        if not self.publishes(state, container):
            return None
        pins = self.pins(state)
        others = CpuSet.union(pin.cpus for key, pin in pins.items() if key != container)
        cpus = pins[container].cpus
        return Resources(shared=cpus & others, exclusive=cpus - others)

    def _placed(
        self, left: StateT, spec: ContainerSpec, sent: Pin, earlier: CpuSet
    ) -> Decision[StateT]:
        placed = self.place(_put(left, spec, sent), spec, earlier)
        pin = self.pins(placed.state)[spec.id]
        after = _put(placed.state, spec, pin.over(sent))
        reason = self._reason(after, spec, pin, placed.rule, placed.detail)
        decision = self.settled(left, after, (reason,))
        return Decision(decision.state, (reason,), pin, decision.updates)

    def _reason(
        self, state: StateT, spec: ContainerSpec, pin: Pin, rule: Rule, detail: str = ""
    ) -> Reason:
        return Reason(
            rule,
            spec.id,
            spec.title,
            pin.cpus,
            detail,
            pin.mems,
            pool=self.pool_of(state, spec.id),
            source=str(spec.source),
        )


def _put(state: StateT, spec: ContainerSpec, sent: Pin) -> StateT:
    return _with_ledger(state, state.ledger.put(spec, sent))


def _with_ledger(state: StateT, ledger: Ledger) -> StateT:
    return msgspec.structs.replace(state, ledger=ledger)
