"""The static policy: CPUs of their own for those who ask for whole ones."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import msgspec

from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.decision import Decision, Reason, Rule
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Pin,
    Synchronized,
)
from nri_resmgr.policy.ledger import Entry, Ledger, oldest_first
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.policy.static.adopt import adopt
from nri_resmgr.policy.static.place import Placement, Room, place, resize
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet


class StaticPolicy(PolicyBase[StaticState]):
    """Exclusive CPUs for Guaranteed containers with whole CPUs; others share.

    Named after the kubelet's static CPU manager, which it replaces. The shared
    pool is what is not granted; it shrinks and grows with every grant, and always
    has the reserved CPUs. Containers of reserved namespaces run on these alone.
    """

    kind: ClassVar[str] = "StaticPolicy"

    def __init__(self, machine: Machine, settings: StaticSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.supply = Supply.of(settings, machine)

    def start(self) -> StaticState:
        """Return the state of a node without containers."""
        return StaticState.empty()

    def pins(self, state: StaticState) -> dict[str, Pin]:
        """Return what should hold for every container in *state*, by id."""
        pool = self._pool(state)
        return {
            key: self._pin(entry.spec, state.grants.get(key), pool)
            for key, entry in state.ledger.entries.items()
        }

    def pools(self, state: StaticState) -> tuple[PoolUse, ...]:
        """Say what is shared, reserved and had by one container each."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.static.uses import uses_of

        return uses_of(state, self._room(state))

    def created(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Place a container that is about to be created."""
        left = state.lose(*state.ledger.preceding(spec))
        offer = left.vacated.get((spec.pod, spec.slot), NO_CPUS)
        placement = place(spec, self._room(left), (offer,))
        return self._seat(left, spec, placement, told=NO_PIN)

    def updated(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            (placement,) = adopt((spec,), {}, self._room(state)).values()
            return self._seat(state, spec, placement, told=spec.present)
        held = state.held_by(spec.id)
        room = self._room(state, besides=spec.id)
        if spec.whole_cpus == state.ledger.spec_of(spec.id).whole_cpus:
            placement = Placement(Rule.UNCHANGED, held)
        elif held and spec.whole_cpus:
            placement = resize(spec, held, room)
        else:
            placement = place(spec, room)
        return self._seat(state, spec, placement, state.ledger.last_sent_to(spec.id))

    def release(self, state: StaticState, container: str) -> StaticState:
        """Drop a container that is here and has stopped."""
        return state.release(container)

    def lose(self, state: StaticState, containers: tuple[str, ...]) -> StaticState:
        """Drop containers that are gone without having stopped."""
        return state.lose(*containers)

    def close(self, state: StaticState, pod: str) -> StaticState:
        """Drop what a pod's containers left behind."""
        return state.close(pod)

    def synchronized(
        self, old: StaticState, event: Synchronized
    ) -> Decision[StaticState]:
        """Place all containers that run, each where it is if it may be there."""
        ordered = oldest_first(event.specs)
        placements = adopt(ordered, old.grants, self._room(StaticState.empty()))
        state = StaticState(
            ledger=Ledger.of({s.id: Entry(s, s.present) for s in ordered}),
            grants={
                key: self._grant(one.cpus)
                for key, one in placements.items()
                if one.cpus
            },
            vacated=old.vacated_since(event),
        )
        pins = self.pins(state)
        reasons = tuple(_reason(s, placements[s.id], pins[s.id]) for s in ordered)
        return self.settled(state, state, reasons)

    def _seat(
        self, state: StaticState, spec: ContainerSpec, placement: Placement, told: Pin
    ) -> Decision[StaticState]:
        grant = self._grant(placement.cpus)
        pin = self._pin(spec, grant, self._pool(state.put(spec, grant, told)))
        seated = state.put(spec, grant, pin.over(told))
        settled = self.settled(state, seated, (_reason(spec, placement, pin),))
        return msgspec.structs.replace(settled, pin=pin)

    def settled(
        self,
        _before: StaticState,
        after: StaticState,
        reasons: tuple[Reason, ...],
    ) -> Decision[StaticState]:
        """Decide on *after*, with updates for all whose pins differ from the ledger."""
        ledger, updates = after.ledger.settle(self.pins(after))
        return Decision(
            msgspec.structs.replace(after, ledger=ledger), reasons, updates=updates
        )

    def _room(self, state: StaticState, besides: str = "") -> Room:
        taken = state.taken - state.held_by(besides)
        return Room(self.machine, self.settings, self.supply, taken)

    def _grant(self, cpus: CpuSet) -> Pin:
        return Pin(cpus, nodes_near(cpus, self.machine)) if cpus else NO_PIN

    def _pool(self, state: StaticState) -> Pin:
        return _interned(self.supply.shared - state.taken, self.supply.shared_mems)

    def _pin(self, spec: ContainerSpec, grant: Pin | None, pool: Pin) -> Pin:
        pin = grant or pool
        if not grant and self.settings.reserves_for(spec.namespace):
            pin = _interned(self.supply.reserved, self.supply.reserved_mems)
        if self.settings.pin_cpus and self.settings.pin_memory:
            return pin
        return Pin(
            cpus=pin.cpus if self.settings.pin_cpus else NO_CPUS,
            mems=pin.mems if self.settings.pin_memory else NO_NODES,
        )


@lru_cache(maxsize=256)
def _interned(cpus: CpuSet, mems: NodeSet) -> Pin:
    # Containers that share then share the object, and comparing them is cheap.
    return Pin(cpus, mems)


def _reason(spec: ContainerSpec, placement: Placement, pin: Pin) -> Reason:
    return Reason(placement.rule, spec.id, spec.title, pin.cpus, placement.detail)
