"""The topology-aware policy: events in, decisions out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.capacity import PoolUse
from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import (
    ContainerSpec,
    Pin,
    PodCreated,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.policy.population import oldest_first
from nri_resmgr.policy.scheduling import scheduling_of
from nri_resmgr.policy.topology_aware.adopt import adopt
from nri_resmgr.policy.topology_aware.cold_start import ends_to_come, warm_up
from nri_resmgr.policy.topology_aware.demand import (
    RESERVED_POOL,
    CpuKind,
    Demand,
    demand_of,
)
from nri_resmgr.policy.topology_aware.exclusive_cpus import check_wishes
from nri_resmgr.policy.topology_aware.former_places import known_from, with_places
from nri_resmgr.policy.topology_aware.pins import resources_of
from nri_resmgr.policy.topology_aware.place import Earlier, Placement, move, place
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.promise import size_of
from nri_resmgr.policy.topology_aware.settings import (
    PodPlacement,
    TopologyAwareSettings,
)
from nri_resmgr.policy.topology_aware.settle import pins_of, seat, settle
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.topology_aware.whole_pods import hold_places, wants_places
from nri_resmgr.policy.views import Candidate
from nri_resmgr.topology import Machine
from nri_resmgr.values import PolicyError

State = TopologyAwareState


class TopologyAwarePolicy(PolicyBase[TopologyAwareState]):
    """Containers in a tree of pools that follows the machine.

    Each container is granted CPUs of one pool: shared with the others there, of
    its own, or both. Its memory is that of the pool, as long as that suffices.
    """

    kind: ClassVar[str] = "TopologyAwarePolicy"

    def __init__(self, machine: Machine, settings: TopologyAwareSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.tree = PoolTree.of(machine, settings.available, settings.reserved)

    def start(self) -> State:
        """Return the state of a node without containers."""
        return State.empty(self.tree)

    def pins(self, state: State) -> dict[str, Pin]:
        """Return what should hold for every container in *state*, by id."""
        return pins_of(state.ledger.entries, state, self.settings)

    def publishes(self, state: State, container: str) -> bool:
        """Say whether a container is told what it has."""
        return self.settings.publish_resources and container in state.ledger

    def resources_of(self, state: State, container: str) -> Resources | None:
        """Say what a container has, for its own eyes."""
        if not self.publishes(state, container):
            return None
        zone = self.tree.root.nodes
        if container in state.memory:
            zone = state.memory.zone_of(container)
        return resources_of(state.grants[container], zone, state.books)

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Say what every pool has, and how much of it is granted."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.topology_aware.uses import uses_of

        return uses_of(state)

    def host_use(self, state: State) -> HostUse:
        """Say what the host's own settings are to follow."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.topology_aware.exclusive_cpus import host_use_of

        return host_use_of(state, self.settings)

    def candidates(self, state: State, container: str) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container if it came now, best first."""
        from nri_resmgr.policy.topology_aware.ranking import ranking  # as above

        return ranking(container, state, self.settings)

    def started(self, state: State, container: str) -> Decision[State]:
        """Set the scheduling class of a container, and time its cold start."""
        timers = ends_to_come((container,), state)
        entry = state.ledger.entries.get(container)
        found = scheduling_of(entry.spec, self.settings) if entry else None
        return Decision(state, (), scheduling=found, timers=timers)

    def created(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Place a container that is about to be created."""
        left = state.lose(*state.ledger.preceding(spec))
        slot = (spec.pod, spec.name)
        demand = demand_of(spec, self.settings)
        offers = []
        if held := left.held.get(slot):
            zone = left.memory.zone_of(held.id)
            offers.append(Earlier(left.grants[held.id], zone))
            left = left.let_go(slot)
        if vacated := left.vacated.get((spec.pod, spec.slot)):
            # It may have been resized since, and the next one begins as the first.
            there = msgspec.structs.replace(vacated, fraction=demand.fraction)
            offers.append(Earlier(there))
        placement = place(demand, left.room(self.settings), offers)
        if spec.preferences.cpu_class or spec.preferences.irq:
            check_wishes(spec, placement.grant, self.settings.cpu_classes)
        if held and placement.rule is not Rule.OLD_PLACE:
            placement = self._against_the_plan(placement, spec)
        told = pinning(0, 0, spec.present.shares)
        seated, pin = seat(spec, placement, told, left, self.settings)
        reason = self._reason(spec, placement, pin)
        moved, settings = placement.moved, self.settings
        after, updates = settle(state.books, seated, settings, moved)
        news, scheduling = pin.since(told), scheduling_of(spec, settings)
        return Decision(after, (reason,), news, updates, scheduling)

    def _against_the_plan(self, found: Placement, spec: ContainerSpec) -> Placement:
        """Judge a container that asks for other than its pod said it would."""
        why = f"{spec.title} asks for other amounts than its pod announced"
        if self.settings.place_pods is PodPlacement.STRICT:
            raise PolicyError(f"{why}; correct the annotation of the pod")
        return msgspec.structs.replace(found, detail=why)

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            return self._adopt_one(state, spec)
        known = state.ledger.entries[spec.id]
        earlier = Earlier(state.grants[spec.id], state.memory.zone_of(spec.id))
        left = state.take_back(spec.id)
        demand = demand_of(spec, self.settings)
        if _same(demand, demand_of(known.spec, self.settings)):
            placement = Placement(
                rule=Rule.UNCHANGED, grant=earlier.grant, memory=state.memory
            )
        else:
            placement = move(demand, earlier, left.room(self.settings))
        seated, pin = seat(spec, placement, known.last_sent, left, self.settings)
        reason = self._reason(spec, placement, pin)
        settled = self.settled(state, seated, (reason,), placement.moved)
        # All of it, told or not: the kubelet may have said otherwise since.
        return msgspec.structs.replace(settled, pin=pin)

    def _adopt_one(self, state: State, spec: ContainerSpec) -> Decision[State]:
        seated, placed = adopt((spec,), {}, state, self.settings)
        pin = pins_of((spec.id,), seated, self.settings)[spec.id]
        ledger = seated.ledger.put(spec, pin.over(spec.present))
        left = msgspec.structs.replace(seated, ledger=ledger, unsettled=True)
        reason = self._reason(spec, placed[spec.id], pin)
        settled = self.settled(state, left, (reason,))
        return msgspec.structs.replace(settled, pin=pin)

    def release(self, state: State, container: str) -> State:
        """Drop a container that is here and has stopped."""
        return state.release(container)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Drop containers that are gone without having stopped."""
        return state.lose(*containers)

    def close(self, state: State, pod: str) -> State:
        """Drop what a pod's containers left behind, and the places held for them."""
        return state.close(pod)

    def pod_created(self, state: State, event: PodCreated) -> Decision[State]:
        """Hold places for all containers of a pod, where the settings say so."""
        mode = self.settings.place_pods
        if mode is PodPlacement.OFF or not wants_places(event, self.settings):
            return Decision(state, ())
        try:
            held, pool = hold_places(state.close(event.pod), event, self.settings)
        except PolicyError as error:
            if mode is PodPlacement.STRICT:
                raise
            return Decision(
                state, (Reason(Rule.FELL_BACK, event.pod, detail=str(error)),)
            )
        return Decision(held, (Reason(Rule.POD_PLACED, event.pod, pool=pool.name),))

    def cold_start_ended(self, state: State, container: str) -> Decision[State]:
        """Let a container have DRAM."""
        warmed = warm_up(container, state)
        if warmed is None:
            return Decision(state, ())
        after, offer = warmed
        spec = state.ledger.spec_of(container)
        reason = Reason(Rule.COLD_START_ENDED, container, spec.title, mems=offer.zone)
        moved = (container, *(one.id for one in offer.moved))
        return self.settled(state, after, (reason,), moved)

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all containers that run, each where it is if it may be there."""
        ordered = oldest_first(event.specs)
        known = known_from(old, self.tree)
        state, placed = adopt(ordered, known, self.start(), self.settings)
        state = with_places(old, state, event, self.settings)
        pins = self.pins(state)
        reasons = tuple(self._reason(s, placed[s.id], pins[s.id]) for s in ordered)
        started = (spec.id for spec in ordered if spec.started)
        timers = ends_to_come(started, state)
        unsettled = msgspec.structs.replace(state, unsettled=True)
        settled = self.settled(state, unsettled, reasons)
        return msgspec.structs.replace(settled, timers=timers)

    def settled(
        self,
        before: State,
        after: State,
        reasons: tuple[Reason, ...],
        moved: Iterable[str] = (),
    ) -> Decision[State]:
        """Decide on *after*, with updates for those whose pools changed.

        Args:
            before: The last state whose updates were sent.
            after: What holds from now on.
            reasons: One per container that the event is about.
            moved: Containers whose memory moved besides.
        """
        after, updates = settle(before.books, after, self.settings, moved)
        return Decision(after, reasons, updates=updates)

    def _reason(self, spec: ContainerSpec, found: Placement, pin: Pin) -> Reason:
        return Reason(
            found.rule,
            spec.id,
            spec.title,
            pin.cpus,
            found.detail,
            pin.mems,
            pool=self._pool_name(found.grant),
            decided=found.decided,
            tried=found.tried,
            source=str(spec.source),
        )

    def _pool_name(self, grant: Grant) -> str:
        """Return the name of a grant's pool, the same as in `pools`."""
        if grant.kind is CpuKind.RESERVED:
            return RESERVED_POOL
        # The CPUs of such a container are not ours: it is in no pool.
        if grant.kind is CpuKind.PRESERVED:
            return ""
        return self.tree.pools[grant.pool].name


def _same(new: Demand, old: Demand) -> bool:
    asked = (new.kind, new.count, new.fraction, size_of(new.spec), new.spec.hugepages)
    before = (old.kind, old.count, old.fraction, size_of(old.spec), old.spec.hugepages)
    return asked == before
