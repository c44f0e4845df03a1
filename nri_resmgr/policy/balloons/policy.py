"""The balloons policy: events in, decisions out."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

import msgspec

from nri_resmgr.policy.balloons.adopt import adopt, adopt_one
from nri_resmgr.policy.balloons.assign import scheduling_of, with_memory
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.pins import allowed_cpus, pin_of, visible
from nri_resmgr.policy.balloons.place import Placement, move, place
from nri_resmgr.policy.balloons.release import lose, release, vacated_since
from nri_resmgr.policy.balloons.settings import BalloonsSettings
from nri_resmgr.policy.balloons.settle import follow, pins_of, settle
from nri_resmgr.policy.balloons.standing import with_given, with_minimum
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import (
    ContainerSpec,
    Pin,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.host_use import NO_CLASSES, GivenClasses, HostUse
from nri_resmgr.policy.ledger import oldest_first
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS

State = BalloonsState


class BalloonsPolicy(PolicyBase[BalloonsState]):
    """Containers in balloons, which grow and shrink with what they ask for.

    No CPU is in two balloons. What is in none can be used by those beside it, where
    their types say so.
    """

    kind: ClassVar[str] = "BalloonsPolicy"

    def __init__(self, machine: Machine, settings: BalloonsSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.ground = Ground(machine, settings)

    def start(self) -> State:
        """Return the state of a node without containers.

        Raises:
            BalloonShort: There are too few CPUs for the balloons that there have to
                be.
        """
        empty = State.empty(self.ground.memory, self.settings.available)
        return with_minimum(with_given(empty, self.ground), self.ground)

    def pins(self, state: State) -> dict[str, Pin]:
        """Return what should hold for every container in *state*, by id."""
        return pins_of(state.ledger.entries, state, self.ground)

    def publishes(self, state: State, container: str) -> bool:
        """Say whether a container is told what it has."""
        seat = state.seats.get(container)
        return (
            self.settings.publish_resources and seat is not None and bool(seat.balloon)
        )

    def resources_of(self, state: State, container: str) -> Resources | None:
        """Say what a container has, for its own eyes."""
        if not self.publishes(state, container):
            return None
        seat = state.seats[container]
        balloon, isolated = state.balloons[seat.balloon], self.machine.isolated
        all_of_it = visible(allowed_cpus(balloon, state), seat, self.ground)
        own = all_of_it & balloon.cpus if len(balloon.members) == 1 else NO_CPUS
        zone = self.machine.memory_nodes
        if container in state.memory:
            zone = state.memory.zone_of(container)
        found = {
            kind: self.machine.nodes_of_kind(kind) & zone
            for kind in sorted(self.ground.kinds)
        }
        return Resources(
            shared=all_of_it - own,
            isolated=own & isolated,
            exclusive=own - isolated,
            mems={kind: nodes for kind, nodes in found.items() if nodes},
        )

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Say what every balloon has, and how much of it is granted."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.balloons.uses import uses_of

        return uses_of(state, self.ground)

    def host_use(self, state: State) -> HostUse:
        """Say what the host's own settings are to follow."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.balloons.host_use import host_use_of

        return host_use_of(state, self.ground)

    def classes_of(self, state: State, container: str) -> GivenClasses:
        """Say which classes a container has by the type of its balloon."""
        seat = state.seats.get(container)
        if seat is None or not seat.balloon:
            return NO_CLASSES
        kind = self.ground.type_of(state.balloons[seat.balloon])
        return GivenClasses(kind.rdt_class, kind.blockio_class)

    def started(self, state: State, container: str) -> Decision[State]:
        """Set the scheduling class of a container that begins to run."""
        entry = state.ledger.entries.get(container)
        scheduling = scheduling_of(entry.spec, self.settings) if entry else None
        return Decision(state, (), scheduling=scheduling)

    def created(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Place a container that is about to be created."""
        left = lose(state, state.ledger.preceding(spec), self.ground)
        told = pinning(0, 0, spec.present.shares)
        old = left.vacated.get((spec.pod, spec.slot)) if spec.slot else None
        placement = place(spec, left.put(spec, told), self.ground, old)
        found = self._seated(state, spec, placement, told)
        scheduling = scheduling_of(spec, self.settings)
        news = found.pin.since(told)
        return Decision(found.state, found.reasons, news, found.updates, scheduling)

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            return self._adopt_one(state, spec)
        known = state.ledger.entries[spec.id]
        left = state.put(spec, known.last_sent)
        if not state.seats[spec.id].balloon:
            placement = Placement(state=left, rule=Rule.PRESERVED)
        elif spec.request == state.seats[spec.id].request:
            placement = Placement(state=left, rule=Rule.UNCHANGED)
        else:
            placement = move(spec, left, self.ground)
        # All of the pin, told or not: the kubelet may have said otherwise since.
        return self._seated(state, spec, placement, known.last_sent)

    def _adopt_one(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Take in a container that runs, of whose creation we were not told."""
        # Its memory may widen anybody's.
        present = msgspec.structs.replace(state.put(spec, spec.present), unsettled=True)
        placement = adopt_one(spec, present, self.ground)
        return self._seated(state, spec, placement, spec.present)

    def _seated(
        self, before: State, spec: ContainerSpec, found: Placement, told: Pin
    ) -> Decision[State]:
        """Give a container that has its balloon its memory, and tell everybody."""
        state, moved = with_memory(spec, found.state, self.ground)
        state, touched = follow(before, state, self.ground)
        pin = pin_of(spec, state, self.ground)
        state = state.put(spec, pin.over(told))
        others = [key for key in (touched | moved) if key != spec.id]
        reason = self._reason(spec, found, pin, state)
        state, updates = settle(state, others, self.ground)
        return Decision(state, (reason,), pin, updates)

    def settled(
        self, before: State, after: State, reasons: tuple[Reason, ...]
    ) -> Decision[State]:
        """Decide on *after*, with updates for those whose balloons changed."""
        after, touched = follow(before, after, self.ground)
        after, updates = settle(after, touched, self.ground)
        return Decision(after, reasons, updates=updates)

    def release(self, state: State, container: str) -> State:
        """Drop a container that is here and has stopped."""
        return release(state, container, self.ground)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Drop containers that are gone without having stopped."""
        left, _ = follow(state, lose(state, containers, self.ground), self.ground)
        return left

    def close(self, state: State, pod: str) -> State:
        """Drop what a pod's containers left behind."""
        kept = {key: one for key, one in state.vacated.items() if key[0] != pod}
        return msgspec.structs.replace(state, vacated=MappingProxyType(kept))

    def pool_of(self, state: State, container: str) -> str:
        """Return the name of a container's balloon."""
        return state.seats[container].balloon

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all containers that run, each where it is if it may be there."""
        ordered = oldest_first(event.specs)
        vacated = vacated_since(old, event)
        state, placed = adopt(ordered, old, self.ground)
        state = msgspec.structs.replace(state, vacated=vacated)
        pins = pins_of(placed, state, self.ground)
        reasons = tuple(
            self._reason(
                one, _kept(placed[one.id], pins[one.id], one), pins[one.id], state
            )
            for one in ordered
        )
        unsettled = msgspec.structs.replace(state, unsettled=True)
        return self.settled(state, unsettled, reasons)

    def _reason(
        self, spec: ContainerSpec, found: Placement, pin: Pin, state: State
    ) -> Reason:
        return Reason(
            found.rule,
            spec.id,
            spec.title,
            pin.cpus,
            found.detail,
            pin.mems,
            pool=state.seats[spec.id].balloon,
            decided=found.decided,
            source=str(spec.source),
        )


def _kept(found: Placement, pin: Pin, spec: ContainerSpec) -> Placement:
    """Call it kept, however it was found, where a container runs where it did."""
    same = pin.cpus and pin.cpus == spec.present.cpus
    return msgspec.structs.replace(found, rule=Rule.KEPT) if same else found
