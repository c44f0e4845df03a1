"""The topology-aware policy: events in, decisions out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import (
    ContainerSpec,
    Pin,
    PodCreated,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.policy.ledger import oldest_first
from nri_resmgr.policy.scheduling import scheduling_of
from nri_resmgr.policy.topology_aware.adopt import (
    adopt,
    former_places_of,
    restore_places,
)
from nri_resmgr.policy.topology_aware.demand import (
    RESERVED_POOL,
    CpuKind,
    Demand,
    demand_of,
)
from nri_resmgr.policy.topology_aware.exclusive_cpus import (
    check_class_requests,
    host_use_of,
)
from nri_resmgr.policy.topology_aware.memory import (
    cold_start_timers,
    end_cold_start,
    size_of,
)
from nri_resmgr.policy.topology_aware.pins import (
    apply_placement,
    pins_of,
    resources_of,
    settle,
)
from nri_resmgr.policy.topology_aware.place import (
    FormerGrant,
    PoolPlacement,
    place,
    resize,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import (
    PodPlacement,
    TopologyAwareSettings,
)
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.topology_aware.views import ranking, uses_of
from nri_resmgr.policy.topology_aware.whole_pods import needs_places, reserve_places
from nri_resmgr.policy.views import Candidate, PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import PolicyError

State = TopologyAwareState


class TopologyAwarePolicy(PolicyBase[TopologyAwareState]):
    """Places containers in a tree of pools that follows the machine.

    Each container is granted CPUs of one pool: shared ones, exclusive ones, or both.
    Its memory is that of the pool, as long as that suffices.
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
        """Return the desired pin of every container in *state*, by id."""
        return pins_of(state.ledger.entries, state, self.settings)

    def publishes(self, state: State, container: str) -> bool:
        """Return whether a container's resources are published to it."""
        return self.settings.publish_resources and container in state.ledger

    def resources_of(self, state: State, container: str) -> Resources | None:
        """Return the resources that are published to a container."""
        if not self.publishes(state, container):
            return None
        zone = self.tree.root.nodes
        if container in state.memory:
            zone = state.memory.zone_of(container)
        return resources_of(state.grants[container], zone, state.pool_ledger)

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Return the capacity and the use of every pool."""
        return uses_of(state)

    def host_use(self, state: State) -> HostUse:
        """Return what host settings depend on: CPU classes, interrupts, isolation."""
        return host_use_of(state, self.settings)

    def candidates(self, state: State, container: str) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container now, best first."""
        return ranking(container, state, self.settings)

    def started(self, state: State, container: str) -> Decision[State]:
        """Set a container's scheduling class and the timer of its cold start."""
        timers = cold_start_timers((container,), state)
        entry = state.ledger.entries.get(container)
        found = scheduling_of(entry.spec, self.settings) if entry else None
        return Decision(state, (), scheduling=found, timers=timers)

    def created(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Place a container that is about to be created."""
        left = state.lose(*state.ledger.preceding(spec))
        slot = (spec.pod, spec.name)
        demand = demand_of(spec, self.settings)
        offers = []
        if reserved := left.reserved_places.get(slot):
            zone = left.memory.zone_of(reserved.id)
            offers.append(FormerGrant(left.grants[reserved.id], zone))
            left = left.release_places(slot)
        if former := left.former_places.get((spec.pod, spec.slot)):
            # The predecessor may have been resized; a restart undoes that.
            grant = msgspec.structs.replace(former, fraction=demand.fraction)
            offers.append(FormerGrant(grant))
        placement = place(demand, left.view(self.settings), offers)
        if spec.preferences.cpu_class or spec.preferences.irq:
            check_class_requests(spec, placement.grant, self.settings.cpu_classes)
        if reserved and placement.rule is not Rule.OLD_PLACE:
            placement = self._deviating(placement, spec)
        # The runtime only knows the shares of a container that is being created.
        sent = pinning(0, 0, spec.present.shares)
        placed, pin = apply_placement(spec, placement, sent, left, self.settings)
        reason = self._reason(spec, placement, pin)
        moved, settings = placement.moved, self.settings
        after, updates = settle(state.pool_ledger, placed, settings, moved)
        changes, scheduling = pin.since(sent), scheduling_of(spec, settings)
        return Decision(after, (reason,), changes, updates, scheduling)

    def _deviating(self, found: PoolPlacement, spec: ContainerSpec) -> PoolPlacement:
        """Refuse or note a container that deviates from its pod's annotation."""
        why = f"{spec.title} asks for other amounts than its pod's annotation says"
        if self.settings.place_pods is PodPlacement.STRICT:
            raise PolicyError(f"{why}; correct the annotation of the pod")
        return msgspec.structs.replace(found, detail=why)

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            return self._adopt_one(state, spec)
        known = state.ledger.entries[spec.id]
        former = FormerGrant(state.grants[spec.id], state.memory.zone_of(spec.id))
        left = state.take_back(spec.id)
        demand = demand_of(spec, self.settings)
        if _same(demand, demand_of(known.spec, self.settings)):
            placement = PoolPlacement(
                rule=Rule.UNCHANGED, grant=former.grant, memory=state.memory
            )
        else:
            placement = resize(demand, former, left.view(self.settings))
        placed, pin = apply_placement(
            spec, placement, known.last_sent, left, self.settings
        )
        reason = self._reason(spec, placement, pin)
        settled = self.settled(state, placed, (reason,), placement.moved)
        # The whole pin, sent before or not: the kubelet may have changed it since.
        return msgspec.structs.replace(settled, pin=pin)

    def _adopt_one(self, state: State, spec: ContainerSpec) -> Decision[State]:
        adopted, placed = adopt((spec,), {}, state, self.settings)
        pin = pins_of((spec.id,), adopted, self.settings)[spec.id]
        ledger = adopted.ledger.put(spec, pin.over(spec.present))
        left = msgspec.structs.replace(adopted, ledger=ledger, unsettled=True)
        reason = self._reason(spec, placed[spec.id], pin)
        settled = self.settled(state, left, (reason,))
        return msgspec.structs.replace(settled, pin=pin)

    def release(self, state: State, container: str) -> State:
        """Drop a known container that has stopped."""
        return state.release(container)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Drop containers that are gone without having stopped."""
        return state.lose(*containers)

    def close(self, state: State, pod: str) -> State:
        """Drop the former and reserved places of a pod's containers."""
        return state.close(pod)

    def pod_created(self, state: State, event: PodCreated) -> Decision[State]:
        """Reserve places for all containers of a pod, where the settings say so."""
        mode = self.settings.place_pods
        if mode is PodPlacement.OFF or not needs_places(event, self.settings):
            return Decision(state, ())
        try:
            after, pool = reserve_places(state.close(event.pod), event, self.settings)
        except PolicyError as error:
            if mode is PodPlacement.STRICT:
                raise
            return Decision(
                state, (Reason(Rule.FELL_BACK, event.pod, detail=str(error)),)
            )
        return Decision(after, (Reason(Rule.POD_PLACED, event.pod, pool=pool.name),))

    def cold_start_ended(self, state: State, container: str) -> Decision[State]:
        """Grant a container the DRAM that was withheld."""
        warmed = end_cold_start(container, state)
        if warmed is None:
            return Decision(state, ())
        after, offer = warmed
        spec = state.ledger.spec_of(container)
        reason = Reason(Rule.COLD_START_ENDED, container, spec.title, mems=offer.zone)
        moved = (container, *(one.id for one in offer.moved))
        return self.settled(state, after, (reason,), moved)

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all running containers, at their present places where legal."""
        ordered = oldest_first(event.specs)
        known = former_places_of(old, self.tree)
        state, placed = adopt(ordered, known, self.start(), self.settings)
        state = restore_places(old, state, event, self.settings)
        pins = self.pins(state)
        reasons = tuple(self._reason(s, placed[s.id], pins[s.id]) for s in ordered)
        started = (spec.id for spec in ordered if spec.started)
        timers = cold_start_timers(started, state)
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
            after: The new state.
            reasons: One per container that the event concerns.
            moved: Containers whose memory nodes changed.
        """
        after, updates = settle(before.pool_ledger, after, self.settings, moved)
        return Decision(after, reasons, updates=updates)

    def _reason(self, spec: ContainerSpec, found: PoolPlacement, pin: Pin) -> Reason:
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
