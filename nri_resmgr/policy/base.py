"""The base of policies: dispatch of events, removal, and default views."""

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
    """Handles each event by a method; a policy overrides those that concern it.

    These have to be overridden: `start`, `pins`, `created`, `updated`, `synchronized`,
    `settled`, `release`, `lose`. `nri_resmgr.policy.simple.SimplePolicy` reduces
    them to four.

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
        """Return the desired pin of every container in *state*, by id."""
        raise NotImplementedError

    def decide(  # noqa: PLR0911 - one for each event
        self, state: StateT, event: Event
    ) -> Decision[StateT]:
        """Decide on *event* in *state*; the arguments are never changed.

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

    # Handlers, one per event.

    def created(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Place a container that is about to be created.

        Raises:
            PolicyError: The node cannot grant what it asks for.
        """
        raise NotImplementedError

    def updated(self, state: StateT, spec: ContainerSpec) -> Decision[StateT]:
        """Handle a request for other resources; the container may be unknown.

        Raises:
            PolicyError: The node cannot grant them.
        """
        raise NotImplementedError

    def synchronized(self, state: StateT, event: Synchronized) -> Decision[StateT]:
        """Place all running containers; never refuses."""
        raise NotImplementedError

    def started(self, state: StateT, container: str) -> Decision[StateT]:  # noqa: ARG002 - for those that override
        """Handle the start of a container; by default nothing changes."""
        return Decision(state, ())

    def cold_start_ended(self, state: StateT, container: str) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Handle the end of a cold start; by default nothing changes."""
        return Decision(state, ())

    def pod_created(self, state: StateT, event: PodCreated) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Handle the creation of a pod; by default nothing changes.

        Raises:
            PolicyError: The node cannot grant what its containers ask for.
        """
        return Decision(state, ())

    def stopped(self, state: StateT, container: str) -> Decision[StateT]:
        """Release a container's resources, and update those that get some of them."""
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
            # Last, since losing containers leaves former places in their pod.
            left = self.close(left, event.pod)
        # Without updates, which NRI's reply cannot carry: the next decision has them.
        return Decision(left, _reasons_of_loss(event, state.ledger))

    # Steps of the handlers.

    def settled(
        self, before: StateT, after: StateT, reasons: tuple[Reason, ...]
    ) -> Decision[StateT]:
        """Decide on *after*, with updates for all whose pins differ from the ledger.

        Args:
            before: The last state whose updates were sent.
            after: The new state.
            reasons: One per container that the event concerns.
        """
        raise NotImplementedError

    def release(self, state: StateT, container: str) -> StateT:
        """Drop a known container that has stopped."""
        raise NotImplementedError

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop known containers that are gone without having stopped.

        Their creation must have failed after the reply, and the updates in that reply
        may be lost with it: all pins have to be sent again.
        """
        raise NotImplementedError

    def close(self, state: StateT, pod: str) -> StateT:  # noqa: ARG002 - as above
        """Drop former places of a pod's containers; by default there are none."""
        return state

    def pool_of(self, state: StateT, container: str) -> str:  # noqa: ARG002 - as above
        """Return the name of a container's pool for the log; empty by default."""
        return ""

    # Views.

    def publishes(self, state: StateT, container: str) -> bool:  # noqa: ARG002 - as above
        """Return whether resources are published to a container; default: False."""
        return False

    def resources_of(self, state: StateT, container: str) -> Resources | None:
        """Return the resources that are published; default: all its CPUs as shared."""
        if not self.publishes(state, container):
            return None
        return Resources(shared=self.pins(state)[container].cpus)

    def host_use(self, state: StateT) -> HostUse:  # noqa: ARG002 - as above
        """Return what host settings depend on; default: nothing."""
        return NO_HOST_USE

    def classes_of(self, state: StateT, container: str) -> GivenClasses:  # noqa: ARG002 - as above
        """Return the classes that come with a place; default: none."""
        return NO_CLASSES

    def pools(self, state: StateT) -> tuple[PoolUse, ...]:  # noqa: ARG002 - as above
        """Return the capacity and the use of every pool; default: no pools."""
        return ()

    def candidates(self, state: StateT, container: str) -> tuple[Candidate, ...]:  # noqa: ARG002 - as above
        """Rank the pools for a container; default: no ranking."""
        return ()


def _gone_with(event: Removed | PodStopped, ledger: Ledger) -> tuple[str, ...]:
    """Return the ids of containers that an event removes without a stop."""
    if isinstance(event, PodStopped):
        return ledger.in_pod(event.pod)
    return (event.id,) if event.id in ledger else ()


def _reasons_of_loss(event: Removed | PodStopped, ledger: Ledger) -> tuple[Reason, ...]:
    """Return a reason per removed container, or one for an unknown container."""
    gone = _gone_with(event, ledger)
    if isinstance(event, Removed) and not gone:
        return (Reason(Rule.UNKNOWN_CONTAINER, event.id),)
    return tuple(Reason(Rule.RELEASED, one, ledger.spec_of(one).title) for one in gone)
