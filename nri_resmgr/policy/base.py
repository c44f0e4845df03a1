"""The base of policies: events to methods, removal, and defaults of what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import (
    ColdStartEnded,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.host_use import NO_CLASSES, NO_HOST_USE, GivenClasses, HostUse
from nri_resmgr.policy.ledger import KnowsContainers, Ledger
from nri_resmgr.policy.views import Candidate, PoolUse

StateT = TypeVar("StateT", bound=KnowsContainers)


class PolicyBase(Generic[StateT]):
    """Answers each event by a method; a policy overrides those that concern it.

    Has to be overridden: `start`, `pins`, `created`, `updated`, `synchronized`,
    `settled`, `release`, `lose`. `nri_resmgr.policy.simple.SimplePolicy` leaves four.

    A plain class without fields, so that every kind of class can derive from it.

    Attributes:
        kind: The kind of the configuration document.
    """

    __slots__ = ()

    kind: ClassVar[str]

    def start(self) -> StateT:
        """Return the state of a node without containers."""
        raise NotImplementedError

    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return what should hold for every container in *state*, by id."""
        raise NotImplementedError

    def decide(  # noqa: PLR0911 - one for each event
        self, state: StateT, event: Event
    ) -> Decision[StateT]:
        """Answer *event* against *state*; the argument is never changed.

        Raises:
            PolicyError: The node cannot grant what was created or updated.
        """
        match event:
            case Created():
                return self.created(state, event.spec)
            case Updated():
                return self.updated(state, event.spec)
            case Started():
                return self.started(state, event.id)
            case Stopped():
                return self.stopped(state, event.id)
            case Removed() | PodStopped():
                return self.removed(state, event)
            case PodCreated():
                return self.pod_created(state, event)
            case ColdStartEnded():
                return self.cold_start_ended(state, event.id)
            case Synchronized():
                return self.synchronized(state, event)

    # One per event.

    def created(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Place a container that is about to be created.

        Raises:
            PolicyError: The node cannot grant what it asks for.
        """
        raise NotImplementedError

    def updated(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Answer a request for other resources; the container may be unknown.

        Raises:
            PolicyError: The node cannot grant them.
        """
        raise NotImplementedError

    def synchronized(self, state: StateT, event: Synchronized) -> Decision[StateT]:
        """Place all containers that run; never refuses."""
        raise NotImplementedError

    def started(self, state: StateT, container: str) -> Decision[StateT]:  # noqa: ARG002 - for those that override
        """Answer the start of a container; by default nothing changes."""
        return Decision(state, ())

    def cold_start_ended(self, state: StateT, container: str) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Answer the end of a time without DRAM; by default nothing changes."""
        return Decision(state, ())

    def pod_created(self, state: StateT, event: PodCreated) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Answer the creation of a pod; by default nothing changes.

        Raises:
            PolicyError: The node has no room for all of its containers.
        """
        return Decision(state, ())

    def stopped(self, state: StateT, container: str) -> Decision[StateT]:
        """Release what a container had, and update those that gain by it."""
        if container not in state.ledger:
            reason = Reason(Rule.UNKNOWN_CONTAINER, container)
            return self.settled(state, state, (reason,))
        title = state.ledger.spec_of(container).title
        pool = self.pool_of(state, container)
        reason = Reason(Rule.RELEASED, container, title, pool=pool)
        return self.settled(state, self.release(state, container), (reason,))

    def removed(self, state: StateT, event: Removed | PodStopped) -> Decision[StateT]:
        """Drop containers that are gone without having stopped."""
        left = self.lose(state, _gone_with(event, state.ledger))
        if isinstance(event, PodStopped):
            # Afterwards: what is lost leaves its place on offer in its pod.
            left = self.close(left, event.pod)
        # No updates: the difference rides on the next reply that can carry it.
        return Decision(left, _reasons_of_loss(event, state.ledger))

    # What these are made of.

    def settled(
        self, before: StateT, after: StateT, reasons: tuple[Reason, ...]
    ) -> Decision[StateT]:
        """Decide on *after*, with updates for all whose pins differ from the ledger.

        Args:
            before: The last state whose updates were sent.
            after: What holds from now on.
            reasons: One per container that the event is about.
        """
        raise NotImplementedError

    def release(self, state: StateT, container: str) -> StateT:
        """Drop a container that is here and has stopped."""
        raise NotImplementedError

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop containers that are here and are gone without having stopped.

        Their creation must have failed after it was answered, and with it the
        updates in that answer may be lost: all pins have to be sent again.
        """
        raise NotImplementedError

    def close(self, state: StateT, pod: str) -> StateT:  # noqa: ARG002 - as above
        """Drop what a pod's containers left behind; by default that is nothing."""
        return state

    def pool_of(self, state: StateT, container: str) -> str:  # noqa: ARG002 - as above
        """Return the name of a container's pool for the log; empty by default."""
        return ""

    # What is shown.

    def publishes(self, state: StateT, container: str) -> bool:  # noqa: ARG002 - as above
        """Say whether a container's resources are published to it: not by default."""
        return False

    def resources_of(self, state: StateT, container: str) -> Resources | None:
        """Return the resources that are published: by default all its CPUs, shared."""
        if not self.publishes(state, container):
            return None
        return Resources(shared=self.pins(state)[container].cpus)

    def host_use(self, state: StateT) -> HostUse:  # noqa: ARG002 - as above
        """Return what the host's own settings follow: by default nothing."""
        return NO_HOST_USE

    def classes_of(self, state: StateT, container: str) -> GivenClasses:  # noqa: ARG002 - as above
        """Return the classes that a container has by where it is: none by default."""
        return NO_CLASSES

    def pools(self, state: StateT) -> tuple[PoolUse, ...]:  # noqa: ARG002 - as above
        """Return what every pool has: by default there are none."""
        return ()

    def candidates(self, state: StateT, container: str) -> tuple[Candidate, ...]:  # noqa: ARG002 - as above
        """Rank the pools for a container: by default they are not ranked."""
        return ()


def _gone_with(event: Removed | PodStopped, ledger: Ledger) -> tuple[str, ...]:
    """Return the ids of those who are gone, without having stopped, by an event."""
    if isinstance(event, PodStopped):
        return ledger.in_pod(event.pod)
    return (event.id,) if event.id in ledger else ()


def _reasons_of_loss(event: Removed | PodStopped, ledger: Ledger) -> tuple[Reason, ...]:
    """Say of each who is gone by an event that it is, or that nobody knew it."""
    gone = _gone_with(event, ledger)
    if isinstance(event, Removed) and not gone:
        return (Reason(Rule.UNKNOWN_CONTAINER, event.id),)
    return tuple(Reason(Rule.RELEASED, one, ledger.spec_of(one).title) for one in gone)
