"""The base of small policies, which place one container after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.base import PolicyBase, with_ledger
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import KnowsContainers, Ledger, oldest_first
from nri_resmgr.policy.reported import Reported
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import CpuSet, PolicyError


class SimpleState(KnowsContainers, frozen=True):
    """The state of a `SimplePolicy`; a policy derives a class with more fields.

    The base class keeps the ledger.
    """

    ledger: Ledger = msgspec.field(default_factory=Ledger.of)


StateT = TypeVar("StateT", bound=SimpleState)
_StateT = TypeVar("_StateT", bound=SimpleState)


class Placed(msgspec.Struct, Generic[_StateT], frozen=True):
    """The state with a placed container, and the rule and detail for the log."""

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
        # Arranged once, when it has its place: it may need what its predecessor had.
        left = self._without(state, state.ledger.preceding(spec))
        return self._placed(left, spec, NO_PIN, CpuSet())

    def updated(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Place a container anew, with what it has as its earlier place."""
        if spec.id not in state.ledger:
            return self._placed(state, spec, spec.present, spec.present.cpus)
        earlier = self.pins(state)[spec.id].cpus
        left = self.vacate(state, spec.id)
        return self._placed(left, spec, state.ledger.last_sent_to(spec.id), earlier)

    def synchronized(self, state: StateT, event: Synchronized) -> Decision[StateT]:
        """Place all running containers: known ones first, then by age.

        What is known of one that has moved since does not count. Those without a place
        come last.
        """
        ordered = oldest_first(event.specs)
        reported, pins = Reported.of(ordered), self.pins(state)
        known = {
            spec.id: pins[spec.id]
            for spec in ordered
            if (entry := state.ledger.entries.get(spec.id))
            and reported.is_known(spec.present, entry)
        }
        after = self.emptied(state, ordered)
        rules: dict[str, tuple[Rule, str]] = {}
        earlier_of = {one.id: known.get(one.id, one.present).cpus for one in ordered}
        for spec in sorted(
            ordered,
            key=lambda one: (
                not self.has_place(state, after, one, earlier_of[one.id]),
                one.id not in known,
            ),
        ):
            earlier = earlier_of[spec.id]
            there = _put(after, spec, spec.present)
            try:
                placed = self.place(there, spec, earlier)
            except PolicyError as refusal:
                # Running containers cannot be refused.
                placed = Placed(there, Rule.FELL_BACK, str(refusal))
            after = placed.state
            rules[spec.id] = placed.rule, placed.detail
        after = self.arranged(after)
        pins = self.pins(after)
        reasons = [
            self._reason(after, spec, pins[spec.id], Rule.KEPT)
            if pins[spec.id].cpus == spec.present.cpus
            # One without a place has less than it asks for, wherever it runs.
            and rules[spec.id][0] is not Rule.FELL_BACK
            else self._reason(after, spec, pins[spec.id], *rules[spec.id])
            for spec in ordered
        ]
        return self.settled(after, after, tuple(reasons))

    def has_place(
        self,
        before: StateT,  # noqa: ARG002 - for those that override
        emptied: StateT,  # noqa: ARG002
        spec: ContainerSpec,  # noqa: ARG002
        earlier: CpuSet,  # noqa: ARG002
    ) -> bool:
        """Return whether a running container has a place, to be kept; default: True.

        One that has none must not get that of another. *before* can be older than what
        the runtime reports; *emptied* is what `emptied` made of it.
        """
        return True

    def emptied(self, state: StateT, specs: Sequence[ContainerSpec]) -> StateT:  # noqa: ARG002 - for those that override
        """Return the state in which a synchronization places all; default: `start`.

        *state* may be that of other settings, or older than what the *specs* report.
        """
        return self.start()

    def arranged(self, state: StateT) -> StateT:
        """Adjust what depends on all places, after they changed; default: nothing."""
        return state

    def release(self, state: StateT, container: str) -> StateT:
        """Drop a known container that has stopped."""
        return self.arranged(self._dropped(state, container))

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop known containers that are gone without having stopped."""
        return self.arranged(self._without(state, containers))

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

    def _dropped(self, state: StateT, container: str) -> StateT:
        left = self.vacate(state, container)
        return with_ledger(left, left.ledger.drop(container))

    def _without(self, state: StateT, lost: tuple[str, ...]) -> StateT:
        """Drop containers as `PolicyBase.lose` does, and arrange nothing."""
        left = state
        for container in lost:
            left = self._dropped(left, container)
        return with_ledger(left, left.ledger.forget_last_sent()) if lost else left

    def _placed(
        self, left: StateT, spec: ContainerSpec, sent: Pin, earlier: CpuSet
    ) -> Decision[StateT]:
        placed = self.place(_put(left, spec, sent), spec, earlier)
        arranged = self.arranged(placed.state)
        pin = self.pins(arranged)[spec.id]
        after = _put(arranged, spec, pin.over(sent))
        reason = self._reason(after, spec, pin, placed.rule, placed.detail)
        decision = self.settled(left, after, (reason,))
        return replace(decision, pin=pin)

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
            source=spec.origin,
        )


def _put(state: StateT, spec: ContainerSpec, sent: Pin) -> StateT:
    return with_ledger(state, state.ledger.put(spec, sent))
