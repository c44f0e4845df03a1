"""The static policy: CPUs of their own for those who ask for whole ones."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from nri_resmgr.policy.capacity import PoolUse
from nri_resmgr.policy.decision import Decision, Reason, Resources, Rule
from nri_resmgr.policy.events import (
    NO_PIN,
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
from nri_resmgr.policy.ledger import Entry, Ledger
from nri_resmgr.policy.memory import nodes_near
from nri_resmgr.policy.population import gone_with, oldest_first, reasons_of_loss
from nri_resmgr.policy.static.adopt import adopt
from nri_resmgr.policy.static.place import Placement, Room, place, resize
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet


class StaticPolicy:
    """Exclusive CPUs for Guaranteed containers with whole CPUs; others share.

    Named after the kubelet's static CPU manager, which it replaces. The shared
    pool is what is not granted; it shrinks and grows with every grant, and always
    has the reserved CPUs. Containers of reserved namespaces run on these alone.
    """

    def __init__(self, machine: Machine, settings: StaticSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.supply = Supply.of(settings, machine)

    @property
    def kind(self) -> str:
        """The kind of the configuration document."""
        return "StaticPolicy"

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

    def decide(self, state: StaticState, event: Event) -> Decision[StaticState]:
        """Answer *event* against *state*; the argument is never changed.

        Raises:
            PolicyError: The node cannot grant what was created or updated.
        """
        match event:
            case Created(spec):
                return self._create(state, spec)
            case Updated(spec):
                return self._update(state, spec)
            case Stopped(container):
                return self._stop(state, container)
            case Removed() | PodStopped():
                return self._forget(state, event)
            case PodCreated() | Started() | ColdStartEnded():
                return Decision(state, ())  # neither CPUs nor memory depend on these
            case Synchronized():
                return self._synchronize(state, event)

    def tells(self, _state: StaticState, _container: str) -> bool:
        """Say that no container of this policy is told what it has."""
        return False

    def resources_of(self, _state: StaticState, _container: str) -> Resources | None:
        """Say nothing: containers of this policy are not told what they have."""
        return None

    def pools(self, state: StaticState) -> tuple[PoolUse, ...]:
        """Say what is shared, reserved and had by one container each."""
        # Nobody asks while a runtime waits for us to register.
        from nri_resmgr.policy.static.uses import uses_of

        return uses_of(state, self._room(state))

    def host_use(self, _state: StaticState) -> HostUse:
        """Say what the host's own settings are to follow: nothing of this policy."""
        return NO_HOST_USE

    def classes_of(self, _state: StaticState, _container: str) -> GivenClasses:
        """Say which classes a container has by where it is: none."""
        return NO_CLASSES

    def _create(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        left = state.lose(*state.ledger.preceding(spec))
        offer = left.vacated.get((spec.pod, spec.slot), NO_CPUS)
        placement = place(spec, self._room(left), (offer,))
        return self._seat(left, spec, placement, told=NO_PIN)

    def _update(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
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
        return self._seat(state, spec, placement, state.ledger.told_to(spec.id))

    def _stop(self, state: StaticState, container: str) -> Decision[StaticState]:
        if container not in state.ledger:
            return self._settle(state, (Reason(Rule.UNKNOWN_CONTAINER, container),))
        title = state.ledger.spec_of(container).title
        reason = Reason(Rule.RELEASED, container, title)
        return self._settle(state.release(container), (reason,))

    def _forget(
        self, state: StaticState, event: Removed | PodStopped
    ) -> Decision[StaticState]:
        gone = gone_with(event, state.ledger)
        left = state.close(event.pod) if isinstance(event, PodStopped) else state
        # No updates: the difference rides on the next reply that can carry it.
        return Decision(left.lose(*gone), reasons_of_loss(event, state.ledger))

    def _synchronize(
        self, old: StaticState, event: Synchronized
    ) -> Decision[StaticState]:
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
        return self._settle(
            state, tuple(_reason(s, placements[s.id], pins[s.id]) for s in ordered)
        )

    def _seat(
        self, state: StaticState, spec: ContainerSpec, placement: Placement, told: Pin
    ) -> Decision[StaticState]:
        grant = self._grant(placement.cpus)
        pin = self._pin(spec, grant, self._pool(state.put(spec, grant, told)))
        seated = state.put(spec, grant, pin.over(told))
        settled = self._settle(seated, (_reason(spec, placement, pin),))
        return msgspec.structs.replace(settled, pin=pin)

    def _settle(
        self, state: StaticState, reasons: tuple[Reason, ...]
    ) -> Decision[StaticState]:
        ledger, updates = state.ledger.settle(self.pins(state))
        return Decision(
            msgspec.structs.replace(state, ledger=ledger), reasons, updates=updates
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
