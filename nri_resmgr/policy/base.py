"""The base of policies: dispatch of events, removal, and default views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace

from nri_resmgr.policy.claims import (
    NO_CLAIMS,
    ClaimDevice,
    ClaimsNotOffered,
    PreparedClaim,
)
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.events import (
    ClaimPrepared,
    ClaimReturned,
    ColdStartEnded,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodCreated,
    PodOverhead,
    PodStopped,
    Rebalance,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.host_use import NO_CLASSES, NO_HOST_USE, GivenClasses, HostUse
from nri_resmgr.policy.ledger import KnowsContainers, Ledger
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import Candidate, CpuRoom, PoolUse, Reservation
from nri_resmgr.policy.whole_pods import reasons_of_returned
from nri_resmgr.values import ONE_CPU, CpuSet, PolicyError

StateT = TypeVar("StateT", bound=KnowsContainers)


class PolicyBase(Generic[StateT]):
    """Handles each event by a method; a policy overrides those that concern it.

    These have to be overridden: `start`, `pins`, `created`, `updated`, `synchronized`,
    `release`. `nri_resmgr.policy.simple.SimplePolicy` reduces them to four.

    A plain class without fields, so that every kind of class can derive from it.

    Attributes:
        kind: The kind of the configuration document.
        obeys: The fields of `Preferences` that decide here, and ``hints`` where
            topology hints do. Other annotations are reported as without effect, or
            refuse the container where they are strict.
        refuses_strict: Whether such strict annotations refuse it, and strict ones that
            cannot be read.
        rebalances: Whether `rebalanced` moves anything.
        sets_environment: Whether `environment_of` returns anything.
    """

    __slots__ = ()

    kind: ClassVar[str]
    obeys: ClassVar[frozenset[str]] = frozenset()
    refuses_strict: ClassVar[bool] = True
    rebalances: ClassVar[bool] = False
    sets_environment: ClassVar[bool] = False

    def start(self) -> StateT:
        """Return the state of a node without containers."""
        raise NotImplementedError

    def pins(self, state: StateT) -> Mapping[str, Pin]:
        """Return the desired pin of every container in *state*, by id."""
        raise NotImplementedError

    def decide(self, state: StateT, event: Event) -> Decision[StateT]:
        """Decide on *event* in *state*; the arguments are never changed.

        Raises:
            PolicyError: The node cannot grant what was created or updated. It says
                what would help, if anything.
        """
        try:
            return self.answer(state, event)
        except PolicyError as error:
            self.advise(error, state, event)
            raise

    def advise(self, error: PolicyError, state: StateT, event: Event) -> None:
        """Add to a refusal what would help; by default nothing."""

    def answer(  # noqa: C901, PLR0911, PLR0912 - one for each event
        self, state: StateT, event: Event
    ) -> Decision[StateT]:
        """Decide like `decide`, without advice in a refusal.

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
            case PodOverhead():
                return self.pod_overhead(state, event)
            case ColdStartEnded():
                return self.cold_start_ended(state, event.id)
            case ClaimPrepared():
                return self.claim_prepared(state, event)
            case ClaimReturned():
                return self.claim_returned(state, event)
            case Rebalance():
                return self.rebalanced(state, event)
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

    def rebalanced(self, state: StateT, event: Rebalance) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Move containers to where they would be placed now; by default none."""
        return Decision(state, ())

    def claim_prepared(self, state: StateT, event: ClaimPrepared) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Give a claim its CPUs; by default this is refused.

        Raises:
            PolicyError: The node cannot grant them.
        """
        raise ClaimsNotOffered(self.kind)

    def claim_returned(self, state: StateT, event: ClaimReturned) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Take the CPUs of a claim back; by default there are none.

        Raises:
            PolicyError: A container still has them.
        """
        return Decision(state, ())

    def pod_created(self, state: StateT, event: PodCreated) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Handle the creation of a pod; by default nothing changes.

        Raises:
            PolicyError: The node cannot grant what its containers ask for.
        """
        return Decision(state, ())

    def pod_overhead(self, state: StateT, event: PodOverhead) -> Decision[StateT]:  # noqa: ARG002 - as above
        """Account the overhead of a pod; by default it is not accounted."""
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
        """Drop containers that are gone without having stopped.

        NRI's reply cannot carry the updates of those that get their resources: they are
        sent without a request.
        """
        ledger = state.ledger
        if isinstance(event, PodStopped):
            gone = ledger.in_pod(event.pod)
            # Closed last, since losing containers leaves former places in their pod.
            left = self.close(self.lose(state, gone), event.pod)
        elif event.id in ledger:
            gone = (event.id,)
            left = self.lose(state, gone)
        else:
            return Decision(state, (Reason(Rule.UNKNOWN_CONTAINER, event.id),))
        reasons = [
            Reason(Rule.RELEASED, key, ledger.spec_of(key).title) for key in gone
        ]
        if isinstance(event, PodStopped):
            reasons += reasons_of_returned(event.pod, self.reservations(state))
        return self.settled(state, left, tuple(reasons))

    # Steps of the handlers.

    def settled(
        self,
        before: StateT,  # noqa: ARG002 - as above
        after: StateT,
        reasons: tuple[Reason, ...],
    ) -> Decision[StateT]:
        """Decide on *after*, with updates for all whose pins differ from the ledger.

        By default all pins are compared. *before* is the last state whose updates were
        sent, for policies that compare those only that can have changed.
        """
        ledger, updates = after.ledger.settle(self.pins(after))
        return Decision(with_ledger(after, ledger), reasons, updates=updates)

    def release(self, state: StateT, container: str) -> StateT:
        """Drop a known container that has stopped."""
        raise NotImplementedError

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop known containers that are gone without having stopped.

        Their creation must have failed after the reply, and the updates in that reply
        may be lost with it: all pins have to be sent again.
        """
        left = state
        for container in containers:
            left = self.release(left, container)
        return with_ledger(left, left.ledger.forget_last_sent()) if containers else left

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

    def republishes(self, before: StateT, after: StateT) -> Iterable[str]:  # noqa: ARG002 - as above
        """Return containers published anew although their pins stay; default: all."""
        return after.ledger.entries

    def host_use(self, state: StateT) -> HostUse:  # noqa: ARG002 - as above
        """Return what host settings depend on; default: nothing."""
        return NO_HOST_USE

    def exclusive_cpus(self, state: StateT) -> Mapping[str, CpuSet]:  # noqa: ARG002 - as above
        """Return the CPUs of containers that share none of theirs; default: none."""
        return {}

    def exclusive_parts(self, state: StateT) -> Mapping[str, CpuSet]:
        """Return the CPUs that only one container has; default: `exclusive_cpus`."""
        return self.exclusive_cpus(state)

    def fixed_places(self, state: StateT) -> Mapping[str, str]:  # noqa: ARG002 - as above
        """Return the places that containers know, by id, as text; default: none."""
        return {}

    def environment_of(self, state: StateT, container: str) -> Mapping[str, str]:  # noqa: ARG002 - as above
        """Return variables that a new container gets; default: none."""
        return {}

    def reservations(self, state: StateT) -> tuple[Reservation, ...]:  # noqa: ARG002 - as above
        """Return the places that are reserved for containers; default: none."""
        return ()

    def claims(self, state: StateT) -> Mapping[str, PreparedClaim]:  # noqa: ARG002 - as above
        """Return the prepared claims by UID; default: none."""
        return NO_CLAIMS

    def claim_devices(self, state: StateT) -> tuple[ClaimDevice, ...]:  # noqa: ARG002 - as above
        """Return the parts of the node that claims can have CPUs of; default: none."""
        return ()

    def classes_of(self, state: StateT, container: str) -> GivenClasses:  # noqa: ARG002 - as above
        """Return the classes that come with a place; default: none."""
        return NO_CLASSES

    def pools(self, state: StateT) -> tuple[PoolUse, ...]:  # noqa: ARG002 - as above
        """Return the capacity and the use of every pool; default: no pools."""
        return ()

    def cpu_room(self, state: StateT, cpus: CpuSet) -> CpuRoom:
        """Return what one more container can be granted; default: what pools have."""
        allocatable = available = 0
        for pool in self.pools(state):
            if pool.within:
                continue  # counted in the whole
            size = ONE_CPU * len(pool.cpus & cpus - pool.reserved)
            allocatable += size
            available += min(size, pool.free)
        return CpuRoom.of(allocatable, available)

    @property
    def keeps_to_room(self) -> bool:
        """Whether it refuses what exceeds the room; default: False."""
        return False

    def candidates(self, state: StateT, container: str) -> tuple[Candidate, ...]:  # noqa: ARG002 - as above
        """Rank the pools for a container; default: no ranking."""
        return ()


def with_ledger(state: StateT, ledger: Ledger) -> StateT:
    """Replace the ledger of a state, which is a Struct."""
    return replace(state, ledger=ledger)
