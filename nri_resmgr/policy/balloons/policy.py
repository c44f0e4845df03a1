"""The balloons policy: answers to events, and what is published and shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec.structs import replace

from nri_resmgr.policy.advice import accepts, sentence
from nri_resmgr.policy.balloons.adopt import adopt, adopt_one
from nri_resmgr.policy.balloons.advice import helps
from nri_resmgr.policy.balloons.choose_type import scheduling_of
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.errors import NoBalloonFits
from nri_resmgr.policy.balloons.lifecycle import create_given, create_minimum
from nri_resmgr.policy.balloons.memory import follow_cpus, grant_memory
from nri_resmgr.policy.balloons.pins import extend_memory, pins_of, settle
from nri_resmgr.policy.balloons.place import (
    BalloonPlacement,
    former_place_of,
    improve,
    move,
    place,
    release,
)
from nri_resmgr.policy.balloons.settings import DEFAULT, RESERVED, BalloonsSettings
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.balloons.state import FormerPlace, ReservedRoom
from nri_resmgr.policy.balloons.views import (
    alone_in_balloon,
    cpu_room_of,
    host_use_of,
    pool_uses,
)
from nri_resmgr.policy.balloons.whole_pods import (
    close_pod,
    is_placed,
    reserve_again,
    reserve_rooms,
    return_rooms,
    rooms_for,
    rooms_since,
    take_room,
)
from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Event,
    Pin,
    PodCreated,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.host_use import NO_CLASSES, GivenClasses, HostUse
from nri_resmgr.policy.ledger import former_places_since, of_other_pods, oldest_first
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import CpuRoom, PoolUse, Reservation
from nri_resmgr.policy.whole_pods import (
    DeviatingContainer,
    PodPlacement,
    announced_since,
    check_announced,
    deviation,
    mode_for,
    names_announced,
    reasons_of_reserved,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError

_NONE: Final[Mapping[str, BalloonPlacement]] = MappingProxyType({})


class BalloonsPolicy(PolicyBase[State]):
    """Containers in balloons, which grow and shrink with their requests.

    No CPU is in two balloons. Idle CPUs, those in no balloon, are shared by balloons
    whose types say so.
    """

    kind: ClassVar[str] = "BalloonsPolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(
        (
            *("balloon", "hide_hyperthreads", "hints", "isolation", "memory_kinds"),
            *("preserve_cpus", "preserve_memory", "scheduling_class"),
        )
    )

    def __init__(self, machine: Machine, settings: BalloonsSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.context = Context(machine, settings)

    def with_settings(self, settings: BalloonsSettings) -> BalloonsPolicy:
        """Return the policy of the same machine with other settings."""
        return BalloonsPolicy(self.machine, settings)

    def advise(self, error: PolicyError, state: State, event: Event) -> None:
        """Add to a refusal what would help."""
        if isinstance(error, NoBalloonFits):
            tried = partial(accepts, self, state, event)
            kind = self.settings.by_name[error.kind]
            error.advice = sentence(helps(kind, self.settings, event, tried))

    def start(self) -> State:
        """Return the state of a node without containers.

        Raises:
            BalloonShort: There are too few CPUs for the minimum of balloons.
        """
        empty = State.empty(self.context.memory, self.settings.available)
        return create_minimum(create_given(empty, self.context), self.context)

    def pins(self, state: State) -> dict[str, Pin]:
        """Return the desired pin of every container, by id."""
        return pins_of(state.ledger.entries, state, self.context)

    def publishes(self, state: State, container: str) -> bool:
        """Return whether a container's resources are published to it."""
        membership = state.memberships.get(container)
        return (
            self.settings.publish_resources
            and membership is not None
            and bool(membership.balloon)
        )

    def resources_of(self, state: State, container: str) -> Resources | None:
        """Return the resources that are published to a container."""
        if not self.publishes(state, container):
            return None
        membership = state.memberships[container]
        balloon, isolated = state.balloons[membership.balloon], self.machine.isolated
        allowed = self.context.visible(state.allowed_cpus(balloon), membership)
        # The CPUs of a balloon are exclusive to the only container in it.
        alone = len(balloon.members) == 1 and not balloon.rooms
        exclusive = allowed & balloon.cpus if alone else NO_CPUS
        zone = self.machine.memory_nodes
        if container in state.memory:
            zone = state.memory.zone_of(container)
        found = {
            kind: self.machine.nodes_of_kind(kind) & zone
            for kind in sorted(self.context.kinds)
        }
        return Resources(
            shared=allowed - exclusive,
            isolated=exclusive & isolated,
            exclusive=exclusive - isolated,
            mems={kind: nodes for kind, nodes in found.items() if nodes},
        )

    def republishes(self, before: State, after: State) -> Iterable[str]:
        """Return the containers of balloons that changed."""
        was = before.balloons
        return [
            key
            for name, balloon in after.balloons.items()
            if (old := was.get(name)) is not balloon and old != balloon
            for key in balloon.members
        ]

    def cpu_room(self, state: State, cpus: CpuSet) -> CpuRoom:
        """Return the idle CPUs that some balloon can have, or a free balloon's own."""
        return cpu_room_of(state, self.context, cpus)

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Return the use of every balloon and of the idle CPUs."""
        return pool_uses(state, self.context)

    def reservations(self, state: State) -> tuple[Reservation, ...]:
        """Return the rooms that are reserved for containers of present pods."""
        return tuple(
            Reservation(one.spec, one.balloon, pin=self._cpus_of_room(one, state))
            for one in state.reserved_rooms.values()
        )

    def _cpus_of_room(self, room: ReservedRoom, state: State) -> Pin:
        """Return the CPUs of a reserved room; its memory is not reserved."""
        if not self.settings.pin_cpus:
            return NO_PIN
        return Pin(state.allowed_cpus(state.balloons[room.balloon]))

    def host_use(self, state: State) -> HostUse:
        """Return the CPUs and containers that host settings follow."""
        return host_use_of(state, self.context)

    def exclusive_cpus(self, state: State) -> dict[str, CpuSet]:
        """Return the CPUs of containers that share none of theirs, by id."""
        # Others may join the built-in balloons at any time, services among them.
        alone = {
            spec.id: balloon.cpus
            for spec, balloon in alone_in_balloon(state)
            if balloon.type not in (RESERVED, DEFAULT)
        }
        # Some use idle CPUs besides, or have hidden threads.
        pins = pins_of(alone, state, self.context)
        return {key: cpus for key, cpus in alone.items() if pins[key].cpus == cpus}

    def classes_of(self, state: State, container: str) -> GivenClasses:
        """Return the classes that the type of its balloon gives a container."""
        membership = state.memberships.get(container)
        if membership is None or not membership.balloon:
            return NO_CLASSES
        kind = self.context.type_of(state.balloons[membership.balloon])
        return GivenClasses(kind.rdt_class, kind.blockio_class)

    def started(self, state: State, container: str) -> Decision[State]:
        """Set the scheduling class of a container that starts."""
        entry = state.ledger.entries.get(container)
        scheduling = scheduling_of(entry.spec, self.settings) if entry else None
        return Decision(state, (), scheduling=scheduling)

    def created(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Place a container that is about to be created."""
        left = self._without(state, state.ledger.preceding(spec))
        # A new container has the shares of its OCI spec, and no pinning yet.
        last_sent = pinning(0, 0, spec.present.shares)
        old = left.former_places.get((spec.pod, spec.slot)) if spec.slot else None
        placement = self._place_new(spec, left.put(spec, last_sent), old)
        decision = self._decided(state, spec, placement, last_sent)
        return replace(
            decision,
            pin=decision.pin.since(last_sent),
            scheduling=scheduling_of(spec, self.settings),
        )

    def _place_new(
        self, spec: ContainerSpec, state: State, old: FormerPlace | None
    ) -> BalloonPlacement:
        """Place a new container, in the room that is reserved for it if there is one.

        Raises:
            PolicyError: No balloon can take it, or it is not as its pod announced it.
        """
        context, slot = self.context, (spec.pod, spec.name)
        is_strict = self.settings.place_pods is PodPlacement.STRICT
        if is_strict and is_placed(spec, context):
            check_announced(spec, state.announced)
        if slot not in state.reserved_rooms:
            return place(spec, state, context, old)
        if found := take_room(spec, slot, state, context):
            return found
        if is_strict:
            raise DeviatingContainer(spec.title)
        left = return_rooms((slot,), state, context)
        return replace(place(spec, left, context, old), detail=deviation(spec.title))

    def pod_created(self, state: State, event: PodCreated) -> Decision[State]:
        """Reserve room for all containers of a pod in one balloon, if it is to be."""
        mode = mode_for(event, self.settings.place_pods)
        pod, context = event.pod, self.context
        if mode is PodPlacement.OFF or not event.expected:
            return Decision(state, ())
        title = event.expected[0].title.rpartition("/")[0]
        own = event.overhead
        overhead = (own,) if own and own.request else ()
        try:
            specs = rooms_for(pod, (*event.expected, *overhead), context)
            found = reserve_rooms(specs, close_pod(pod, state, context), context)
        except PolicyError as error:
            if mode is PodPlacement.STRICT:
                raise
            reason = Reason(Rule.FELL_BACK, pod, title, detail=str(error))
            return Decision(state, (reason,))
        if not specs:
            return Decision(state, ())
        announced = {**found.state.announced, pod: names_announced(event)}
        after = replace(found.state, announced=announced)
        rooms = self.reservations(after)
        pools = dict.fromkeys(one.pool for one in rooms if one.spec.pod == pod)
        reasons = reasons_of_reserved(pod, ", ".join(pools), rooms) if pools else ()
        return self._settled(state, after, reasons, found.displaced)

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            # All pins are compared: its memory may widen that of any container.
            present = replace(state.put(spec, spec.present), unsettled=True)
            placement = adopt_one(spec, present, self.context)
            return self._decided(state, spec, placement, spec.present)
        known = state.ledger.entries[spec.id]
        left = state.put(spec, known.last_sent)
        if not state.memberships[spec.id].balloon:
            placement = BalloonPlacement(left, Rule.PRESERVED)
        elif spec.request == state.memberships[spec.id].request:
            placement = BalloonPlacement(left, Rule.UNCHANGED)
        else:
            placement = move(spec, left, self.context)
        # The whole pin, even if it was sent: the kubelet may have changed it since.
        return self._decided(state, spec, placement, known.last_sent)

    def _decided(
        self,
        before: State,
        spec: ContainerSpec,
        found: BalloonPlacement,
        last_sent: Pin,
    ) -> Decision[State]:
        """Grant memory to a placed container, and collect the updates for others."""
        state, moved = grant_memory(spec, found.state, self.context)
        # Its new balloon may be on other nodes, and have had room without growing.
        own = (spec.id,) if found.rule is Rule.MOVED else ()
        state, followed = follow_cpus((*own, *found.displaced), state, self.context)
        state, affected = extend_memory(before, state, self.context)
        # First, since those that move can take idle CPUs that this one shares. It is
        # among them if it fell back itself: they may leave room to it.
        besides = "" if state.memberships[spec.id].fell_back else spec.id
        state, more, improved = self._improved(state, besides)
        affected |= moved | followed | improved
        pin = pins_of((spec.id,), state, self.context)[spec.id]
        state = state.put(spec, pin.over(last_sent))
        # The last placement of each counts.
        changed = {spec.id: found, **found.displaced, **more}
        others = [key for key in affected if key != spec.id]
        state, updates = settle(state, others, self.context)
        return Decision(state, self._reasons(changed, state), pin, updates)

    def settled(
        self, before: State, after: State, reasons: tuple[Reason, ...]
    ) -> Decision[State]:
        """Decide on *after*, with updates for containers whose balloons changed.

        What is free now may suffice for containers that fell back.
        """
        return self._settled(before, after, reasons)

    def _settled(
        self,
        before: State,
        after: State,
        reasons: tuple[Reason, ...],
        displaced: Mapping[str, BalloonPlacement] = _NONE,
    ) -> Decision[State]:
        after, followed = follow_cpus(displaced, after, self.context)
        after, affected = extend_memory(before, after, self.context)
        after, more, improved = self._improved(after)
        affected |= followed | improved
        more = {**displaced, **more}
        after, updates = settle(after, affected, self.context)
        return Decision(after, (*reasons, *self._reasons(more, after)), updates=updates)

    def _improved(
        self, before: State, besides: str = ""
    ) -> tuple[State, dict[str, BalloonPlacement], dict[str, None]]:
        """Use free CPUs for containers that fell back, and balloons that lack some.

        Returns:
            The new state, the placements of those that moved, and the ids of all whose
            pins may differ.
        """
        state, found = improve(before, self.context, besides)
        if state is before:
            return before, {}, {}
        state, followed = follow_cpus(found, state, self.context)
        state, widened = extend_memory(before, state, self.context)
        return state, found, followed | widened

    def release(self, state: State, container: str) -> State:
        """Remove a container that has stopped."""
        return release(state, container, self.context)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Remove containers that are gone, and have all pins sent again."""
        left, _ = extend_memory(state, self._without(state, containers), self.context)
        return left

    def _without(self, state: State, containers: tuple[str, ...]) -> State:
        left = super().lose(state, containers)
        return replace(left, unsettled=True) if containers else left

    def close(self, state: State, pod: str) -> State:
        """Discard what is kept for a pod: former places and reserved rooms."""
        kept = MappingProxyType(of_other_pods(state.former_places, pod))
        left = close_pod(pod, state, self.context)
        return replace(left, former_places=kept)

    def pool_of(self, state: State, container: str) -> str:
        """Return the name of a container's balloon."""
        return state.memberships[container].balloon

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all running containers, where possible on their present CPUs."""
        ordered = oldest_first(event.specs)
        former_places = former_places_since(
            old.former_places, old.ledger, event, lambda key: former_place_of(key, old)
        )
        rooms = rooms_since(old, event)
        state, placed = adopt(ordered, rooms, old, self.context)
        again = reserve_again(rooms, state, self.context)
        state, _ = follow_cpus(again.displaced, again.state, self.context)
        state = replace(state, announced=announced_since(old.announced, event))
        # Those that remain in a balloon where they fell back may fit elsewhere now.
        state, improved, _ = self._improved(state)
        state = replace(state, former_places=MappingProxyType(former_places))
        pins = pins_of(placed, state, self.context)
        placed = {
            one.id: _as_kept(placed[one.id], pins[one.id], one) for one in ordered
        }
        placed |= {**again.displaced, **improved}
        reasons = self._reasons(placed, state)
        # The runtime may have lost any pin, so that all of them are compared.
        unsettled = replace(state, unsettled=True)
        return self.settled(state, unsettled, reasons)

    def _reasons(
        self, found: Mapping[str, BalloonPlacement], state: State
    ) -> tuple[Reason, ...]:
        """Return the reasons of placements, by id."""
        pins = pins_of(found, state, self.context)
        return tuple(
            self._reason(state.ledger.spec_of(key), one, pins[key], state)
            for key, one in found.items()
        )

    def _reason(
        self, spec: ContainerSpec, found: BalloonPlacement, pin: Pin, state: State
    ) -> Reason:
        return Reason(
            found.rule,
            spec.id,
            spec.title,
            pin.cpus,
            found.detail,
            pin.mems,
            pool=state.memberships[spec.id].balloon,
            decided=found.decided,
            source=spec.origin,
        )


def _as_kept(
    found: BalloonPlacement, pin: Pin, spec: ContainerSpec
) -> BalloonPlacement:
    """Replace the rule by `KEPT` for a container whose CPUs stay the same.

    Not for one that fell back: it has less than it asks for, wherever it runs.
    """
    stays = pin.cpus and pin.cpus == spec.present.cpus
    if not stays or found.rule is Rule.FELL_BACK:
        return found
    return replace(found, rule=Rule.KEPT)
