"""The topology-aware policy: events in, decisions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from nri_resmgr.policy.advice import Change, accepts, sentence
from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.claims import (
    ClaimDevice,
    ClaimInUse,
    ClaimsNotOffered,
    PreparedClaim,
)
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    ClaimPrepared,
    ClaimReturned,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodCreated,
    PodOverhead,
    PodStopped,
    Rebalance,
    Removed,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.policy.ledger import oldest_first
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.adopt import adopt
from nri_resmgr.policy.topology_aware.advice import (
    advise,
    advise_pod,
    node_for,
    without_exclusive_cpus,
)
from nri_resmgr.policy.topology_aware.claims import (
    devices_of,
    prepare_claim,
)
from nri_resmgr.policy.topology_aware.demand import (
    RESERVED_POOL,
    CpuKind,
    Demand,
    demand_of,
)
from nri_resmgr.policy.topology_aware.errors import ExclusiveCpusMissing
from nri_resmgr.policy.topology_aware.exclusive_settings import (
    exclusive_grants,
    host_use_of,
)
from nri_resmgr.policy.topology_aware.former import former_places_of, restore_places
from nri_resmgr.policy.topology_aware.improve import improve
from nri_resmgr.policy.topology_aware.make_room import (
    all_that_share,
    rule_of_displaced,
    without,
)
from nri_resmgr.policy.topology_aware.memory import (
    cold_start_timers,
    end_cold_start,
    size_of,
)
from nri_resmgr.policy.topology_aware.new_container import place_new
from nri_resmgr.policy.topology_aware.overheads import (
    account_overhead,
    follow_container,
)
from nri_resmgr.policy.topology_aware.pins import (
    apply_placement,
    pin_of,
    pins_of,
    resources_of,
    settle,
)
from nri_resmgr.policy.topology_aware.place import (
    FormerGrant,
    PoolPlacement,
    resize,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.rebalance import rebalance
from nri_resmgr.policy.topology_aware.room import cpu_room_of
from nri_resmgr.policy.topology_aware.settings import (
    TopologyAwareSettings,
)
from nri_resmgr.policy.topology_aware.state import TopologyAwareState, claim_id
from nri_resmgr.policy.topology_aware.views import ranking, uses_of
from nri_resmgr.policy.topology_aware.whole_pods import (
    PlacedPod,
    demands_of,
    reserve_places,
)
from nri_resmgr.policy.views import Candidate, CpuRoom, PoolUse, Reservation
from nri_resmgr.policy.whole_pods import (
    PodPlacement,
    mode_for,
    names_announced,
    reason_of_overhead,
    reasons_of_reserved,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, PolicyError

State = TopologyAwareState


class TopologyAwarePolicy(PolicyBase[TopologyAwareState]):
    """Places containers in a tree of pools that follows the machine.

    Each container is granted CPUs of one pool: shared ones, exclusive ones, or both.
    Its memory is that of the pool, as long as that suffices.
    """

    kind: ClassVar[str] = "TopologyAwarePolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(
        (
            *("affinities", "cold_start", "cpu_class", "cpu_priority"),
            *("hide_hyperthreads", "hints", "irq", "isolated", "isolation"),
            *("memory_kinds", "pick_by_hints", "preserve_cpus", "preserve_memory"),
            *("require_isolated", "reserved", "scheduling_class", "shared"),
            *("strict_hints", "unlimited_burstable"),
        )
    )

    rebalances: ClassVar[bool] = True

    def __init__(self, machine: Machine, settings: TopologyAwareSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.tree = PoolTree.of(machine, settings.available, settings.reserved)

    def with_settings(self, settings: TopologyAwareSettings) -> TopologyAwarePolicy:
        """Return the policy of the same machine with other settings."""
        return TopologyAwarePolicy(self.machine, settings)

    def advise(self, error: PolicyError, state: State, event: Event) -> None:
        """Add to a refusal for an annotation what would help; others have advice."""
        if isinstance(error, ExclusiveCpusMissing) and isinstance(event, Created):
            tried = partial(accepts, self, state, event)
            helps = without_exclusive_cpus(error, event.spec, tried)
            error.advice = sentence(helps)

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

    def republishes(self, before: State, after: State) -> Iterable[str]:
        """Return the containers whose resources changed, where they are not pinned.

        Where CPUs and memory are, grants and pins change together.
        """
        if self.settings.pin_cpus and self.settings.pin_memory:
            return ()
        resources_of = self.resources_of
        return [
            key
            for key in after.ledger.entries
            if resources_of(before, key) != resources_of(after, key)
        ]

    def cpu_room(self, state: State, cpus: CpuSet) -> CpuRoom:
        """Return what the pools of some CPUs can grant, isolated CPUs aside."""
        view = state.view(self.settings)
        yielding = all_that_share(view)
        bare = without(yielding.idle, view).pool_ledger
        return cpu_room_of(bare, yielding.give_way(view).pool_ledger, cpus)

    @property
    def keeps_to_room(self) -> bool:
        """Whether it refuses what exceeds the room: shared CPUs are bounded, too."""
        # A container that asks for one CPU may get an isolated one, which is no part
        # of the room.
        adds = self.settings.prefer_isolated and bool(self.tree.root.isolated)
        return self.settings.on_failure is OnFailure.REFUSE and not adds

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Return the capacity and the use of every pool."""
        return uses_of(state)

    def reservations(self, state: State) -> tuple[Reservation, ...]:
        """Return the places that are reserved for containers of present pods."""
        return tuple(
            Reservation(
                spec,
                self._pool_name(grant := state.grants[spec.id]),
                grant.cpus,
                state.memory.zone_of(spec.id),
                pin_of(spec, grant, state.pool_ledger, state.memory, self.settings),
            )
            for spec in state.reserved_places.values()
        )

    def claims(self, state: State) -> Mapping[str, PreparedClaim]:
        """Return the prepared claims by UID."""
        return state.claims

    def claim_devices(self, state: State) -> tuple[ClaimDevice, ...]:
        """Return the NUMA nodes that claims can have CPUs of."""
        if not self.settings.pin_cpus:
            return ()
        return devices_of(state, self.settings)

    def host_use(self, state: State) -> HostUse:
        """Return what host settings depend on: CPU classes, interrupts, isolation."""
        return host_use_of(state, self.settings)

    def exclusive_cpus(self, state: State) -> dict[str, CpuSet]:
        """Return the CPUs of containers that share none of theirs, by id."""
        exclusive = {
            spec.id: cpus for spec, cpus in exclusive_grants(state) if spec.whole_cpus
        }
        # Some share CPUs besides, or have hidden threads.
        pins = pins_of(exclusive, state, self.settings)
        return {key: cpus for key, cpus in exclusive.items() if pins[key].cpus == cpus}

    def exclusive_parts(self, state: State) -> dict[str, CpuSet]:
        """Return the exclusive CPUs of containers by id; some share others besides."""
        if not self.settings.pin_cpus:
            return {}
        return {spec.id: cpus for spec, cpus in exclusive_grants(state)}

    def candidates(self, state: State, container: str) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container now, best first."""
        return ranking(container, state, self.settings)

    def started(self, state: State, container: str) -> Decision[State]:
        """Set a container's scheduling class and the timer of its cold start."""
        timers = cold_start_timers((container,), state)
        entry = state.ledger.entries.get(container)
        found = self.settings.scheduling_of(entry.spec) if entry else None
        return Decision(state, (), scheduling=found, timers=timers)

    def created(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Place a container that is about to be created."""
        left = self.lose(state, state.ledger.preceding(spec))
        new = place_new(spec, left, self.settings)
        left, placement = new.left, new.found
        # The runtime only knows the shares of a container that is being created.
        sent = pinning(0, 0, spec.present.shares)
        placed, pin = apply_placement(spec, placement, sent, left, self.settings)
        # Beside a new container there is only room if one was lost, or its place.
        found: dict[str, PoolPlacement] = {}
        if left is not state:
            placed, pin, found = self._beside(spec, sent, placed, pin)
        placed, pin, beside = self._with_overhead(spec, sent, placed, pin)
        moved = [*placement.affected, *_affected(found), *beside]
        after, updates = settle(state.pool_ledger, placed, self.settings, moved)
        changes, scheduling = pin.since(sent), self.settings.scheduling_of(spec)
        reasons = self._with_others(spec, placement, pin, found, after)
        timers = cold_start_timers(found, after)
        return Decision(after, reasons, changes, updates, scheduling, timers)

    def _with_overhead(
        self, spec: ContainerSpec, sent: Pin, placed: State, pin: Pin
    ) -> tuple[State, Pin, tuple[str, ...]]:
        """Have the overhead of a pod follow its new container; see `_beside`.

        Its memory can widen that of others, and of the container itself.
        """
        follows = follow_container(spec, placed, self.settings)
        if follows.found is None:
            return placed, pin, ()
        placed = follows.state
        others = tuple(key for key in follows.found.affected if key != spec.id)
        if len(others) != len(follows.found.affected):
            pin = pins_of((spec.id,), placed, self.settings)[spec.id]
            placed = replace(placed, ledger=placed.ledger.put(spec, pin.over(sent)))
        return placed, pin, others

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            return self._adopt_one(state, spec)
        known = state.ledger.entries[spec.id]
        try:
            placement = self._resized(spec, state)
        except PolicyError as error:
            advise(
                error,
                spec,
                lambda change: self._resized(
                    change.edit(spec), node_for(change, state, spec.pod, spec.id)
                ),
            )
            raise
        left = state.take_back(spec.id)
        placed, pin = apply_placement(
            spec, placement, known.last_sent, left, self.settings
        )
        placed, pin, found = self._beside(spec, known.last_sent, placed, pin)
        moved = [*placement.affected, *_affected(found)]
        after, updates = settle(state.pool_ledger, placed, self.settings, moved)
        reasons = self._with_others(spec, placement, pin, found, after)
        timers = cold_start_timers(found, after)
        # The whole pin, sent before or not: the kubelet may have changed it since.
        return Decision(after, reasons, pin, updates, timers=timers)

    def _resized(self, spec: ContainerSpec, state: State) -> PoolPlacement:
        known, grant = state.ledger.spec_of(spec.id), state.grants[spec.id]
        demand = demand_of(spec, self.settings)
        if _same(demand, demand_of(known, self.settings)):
            return PoolPlacement(Rule.UNCHANGED, grant, state.memory)
        former = FormerGrant(grant, state.memory.zone_of(spec.id))
        view = state.take_back(spec.id).view(self.settings)
        return resize(demand, former, view, known)

    def _beside(
        self, spec: ContainerSpec, sent: Pin, placed: State, pin: Pin
    ) -> tuple[State, Pin, dict[str, PoolPlacement]]:
        """Place those that fell back beside one that is created or resized.

        They can take CPUs that it shares, so that its *pin* may become another one. It
        is among them if it fell back itself: they may leave room to it.
        """
        besides = "" if placed.grants[spec.id].fell_back else spec.id
        placed, found = improve(placed, self.settings, besides=besides)
        if found:
            pin = pins_of((spec.id,), placed, self.settings)[spec.id]
            ledger = placed.ledger.put(spec, pin.over(sent))
            placed = replace(placed, ledger=ledger)
        return placed, pin, found

    def _adopt_one(self, state: State, spec: ContainerSpec) -> Decision[State]:
        adopted, placed = adopt((spec,), {}, state, self.settings)
        pin = pins_of((spec.id,), adopted, self.settings)[spec.id]
        ledger = adopted.ledger.put(spec, pin.over(spec.present))
        left = replace(adopted, ledger=ledger, unsettled=True)
        reasons = (
            self._reason(spec, placed[spec.id], pin),
            *self._making_way(placed[spec.id], left),
        )
        return replace(self.settled(state, left, reasons), pin=pin)

    def release(self, state: State, container: str) -> State:
        """Drop a known container that has stopped."""
        return state.release(container)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Drop containers that are gone, and have all pins sent again."""
        left = super().lose(state, containers)
        return replace(left, unsettled=True) if containers else left

    def removed(self, state: State, event: Removed | PodStopped) -> Decision[State]:
        """Drop containers that are gone, and send what no reply could carry yet.

        That of an unknown one changes nothing itself.
        """
        decision = super().removed(state, event)
        if not decision.state.unsettled:
            return decision
        return self.settled(state, decision.state, decision.reasons)

    def close(self, state: State, pod: str) -> State:
        """Drop the former and reserved places of a pod's containers."""
        return state.close(pod)

    def pod_created(self, state: State, event: PodCreated) -> Decision[State]:
        """Reserve places for all containers of a pod, where the settings say so."""
        mode = mode_for(event, self.settings.place_pods)
        pod, settings = event.pod, self.settings
        if mode is PodPlacement.OFF or not (demands := demands_of(event, settings)):
            return self._overhead_alone(state, event)
        try:
            found = reserve_places(state.close(pod), pod, demands, settings)
        except PolicyError as error:
            if mode is PodPlacement.STRICT:
                advise_pod(error, lambda change: self._reserved(event, change, state))
                raise
            alone = self._overhead_alone(state, event)
            reason = Reason(Rule.FELL_BACK, pod, detail=str(error))
            return replace(alone, reasons=(reason, *alone.reasons))
        announced = {**found.state.announced, pod: names_announced(event)}
        after = replace(found.state, announced=announced)
        reasons = reasons_of_reserved(pod, found.pool.name, self.reservations(after))
        moved = [one.container for one in found.displaced]
        is_again = any(one == pod for one, _ in state.reserved_places)
        if not moved and not is_again:
            return Decision(after, reasons)
        # A repeated event may reserve less than before.
        why = f"{reasons[0].title} needs its CPUs"
        others = self._of_displaced(found.displaced, why, after)
        return self.settled(state, after, (*reasons, *others), moved)

    def _reserved(
        self, event: PodCreated, change: Change, state: State
    ) -> PlacedPod | None:
        """Reserve the places of a pod after a change; None where it needs none."""
        if change.settings:
            return None
        changed = replace(event, expected=tuple(map(change.edit, event.expected)))
        demands = demands_of(changed, self.settings)
        left = node_for(change, state, event.pod).close(event.pod)
        if not demands:
            return None
        return reserve_places(left, event.pod, demands, self.settings)

    def claim_prepared(self, state: State, event: ClaimPrepared) -> Decision[State]:
        """Give a claim exclusive CPUs of the NUMA nodes that it names."""
        claim = event.claim
        if claim.uid in state.claims:
            return Decision(state, ())
        if not self.settings.pin_cpus:
            raise ClaimsNotOffered(f"{self.kind} without pinCPU")
        after, displaced = prepare_claim(claim, state, self.settings)
        key, cpus = claim_id(claim.uid), after.claims[claim.uid].cpus
        pool = self.tree.smallest_with(cpus).name
        reason = Reason(Rule.CLAIM_PREPARED, key, claim.title, cpus, pool=pool)
        others = self._of_displaced(displaced, f"{claim.title} needs its CPUs", after)
        moved = [one.container for one in displaced]
        return self.settled(state, after, (reason, *others), moved)

    def claim_returned(self, state: State, event: ClaimReturned) -> Decision[State]:
        """Take the CPUs of a claim back."""
        if (known := state.claims.get(event.uid)) is None:
            return Decision(state, ())
        for entry in state.ledger.entries.values():
            if event.uid in entry.spec.claims:
                raise ClaimInUse(known.claim, entry.spec.title)
        key, title = claim_id(event.uid), known.claim.title
        reason = Reason(Rule.CLAIM_RETURNED, key, title)
        return self.settled(state, state.drop_claim(event.uid), (reason,))

    def _overhead_alone(self, state: State, event: PodCreated) -> Decision[State]:
        if event.overhead is None:
            return Decision(state, ())
        return self.pod_overhead(state, PodOverhead(event.pod, event.overhead))

    def pod_overhead(self, state: State, event: PodOverhead) -> Decision[State]:
        """Account the overhead of a pod, in the pool of its containers if possible."""
        placed = account_overhead(event.spec, state, self.settings)
        if placed.state is state:
            return Decision(state, ())
        after, found = placed.state, placed.found
        detail = found.detail if found else ""
        reasons = reason_of_overhead(event.pod, self.reservations(after), detail)
        if found is None:
            return self.settled(state, after, reasons)
        why = f"{event.spec.title} needs its CPUs"
        others = self._of_displaced(found.displaced, why, after)
        return self.settled(state, after, (*reasons, *others), found.affected)

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

    def rebalanced(self, state: State, event: Rebalance) -> Decision[State]:
        """Move containers that share CPUs to where they would be placed now."""
        after, found = rebalance(state, self.settings, event.limit)
        if not found:
            return Decision(state, ())
        after, fitting = improve(after, self.settings)
        found |= fitting
        reasons = tuple(self._reasons(found, after))
        settled = self.settled(state, after, reasons, _affected(found))
        timers = cold_start_timers(found, after)
        return replace(settled, timers=(*timers, *settled.timers))

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all running containers, at their present places where legal."""
        ordered = oldest_first(event.specs)
        known = former_places_of(old, self.tree, ordered, self.settings)
        start = self.start()
        for claim in old.claims.values():
            start = start.put_claim(claim)
        state, placed = adopt(ordered, known, start, self.settings)
        state = restore_places(old, state, event, self.settings)
        pins = self.pins(state)
        reasons = tuple(self._reason(s, placed[s.id], pins[s.id]) for s in ordered)
        started = (spec.id for spec in ordered if spec.started)
        timers = cold_start_timers(started, state)
        unsettled = replace(state, unsettled=True)
        settled = self.settled(state, unsettled, reasons)
        return replace(settled, timers=(*timers, *settled.timers))

    def settled(
        self,
        before: State,
        after: State,
        reasons: tuple[Reason, ...],
        moved: Iterable[str] = (),
    ) -> Decision[State]:
        """Decide on *after*, with updates where pools changed or memory *moved*.

        What is free now may suffice for containers that fell back.
        """
        after, found = improve(after, self.settings)
        moved = [*moved, *_affected(found)]
        after, updates = settle(before.pool_ledger, after, self.settings, moved)
        reasons = (*reasons, *self._reasons(found, after))
        timers = cold_start_timers(found, after)
        return Decision(after, reasons, updates=updates, timers=timers)

    def _with_others(
        self,
        spec: ContainerSpec,
        placement: PoolPlacement,
        pin: Pin,
        found: Mapping[str, PoolPlacement],
        state: State,
    ) -> tuple[Reason, ...]:
        """Return the reason of a placed container, and those of all it affects."""
        others = {key: one for key, one in found.items() if key != spec.id}
        placement = found.get(spec.id, placement)  # others have left room to it
        grant = state.grants[spec.id]
        if grant != placement.grant:  # it has made way for one of *found*
            rule = rule_of_displaced(grant)
            placement = replace(placement, rule=rule, grant=grant)
        return (
            self._reason(spec, placement, pin),
            *self._making_way(placement, state),
            *self._reasons(others, state),
        )

    def _reasons(
        self, found: Mapping[str, PoolPlacement], state: State
    ) -> Iterator[Reason]:
        pins = pins_of(found, state, self.settings)
        for key, placement in found.items():
            # One that was better placed may have made way for the next.
            if state.grants[key] == placement.grant:
                yield self._reason(state.ledger.spec_of(key), placement, pins[key])
            yield from self._making_way(placement, state)

    def _making_way(self, found: PoolPlacement, state: State) -> Iterable[Reason]:
        """Return the reasons of containers that make way."""
        if not found.displaced:
            return ()
        why = f"{state.ledger.spec_of(found.grant.container).title} needs its CPUs"
        return self._of_displaced(found.displaced, why, state)

    def _of_displaced(
        self, displaced: Sequence[Grant], why: str, state: State
    ) -> Iterator[Reason]:
        pins = pins_of([one.container for one in displaced], state, self.settings)
        for grant in displaced:
            if state.grants[grant.container] != grant:
                continue  # it has returned already
            place = PoolPlacement(rule_of_displaced(grant), grant, state.memory)
            spec = state.ledger.spec_of(grant.container)
            yield self._reason(spec, replace(place, detail=why), pins[spec.id])

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
            source=spec.origin,
        )

    def _pool_name(self, grant: Grant) -> str:
        """Return the name of a grant's pool, the same as in `pools`."""
        if grant.kind is CpuKind.RESERVED:
            return RESERVED_POOL
        # The CPUs of such a container are not ours: it is in no pool.
        if grant.kind is CpuKind.PRESERVED:
            return ""
        return self.tree.pools[grant.pool].name


def _affected(found: Mapping[str, PoolPlacement]) -> Iterator[str]:
    """Yield the containers that were placed again, and those whose memory moved."""
    for key, one in found.items():
        yield key
        yield from one.affected


def _same(new: Demand, old: Demand) -> bool:
    asked = (new.kind, new.count, new.fraction, size_of(new.spec), new.spec.hugepages)
    before = (old.kind, old.count, old.fraction, size_of(old.spec), old.spec.hugepages)
    return asked == before
