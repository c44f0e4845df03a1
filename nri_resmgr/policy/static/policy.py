"""The static policy: answers to events, and what is shown of its pools."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from msgspec.structs import replace

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
from nri_resmgr.policy.static.place import (
    FreeCpus,
    StaticPlacement,
    adopt,
    place,
    resize,
)
from nri_resmgr.policy.static.pool_use import pool_uses
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet


class StaticPolicy(PolicyBase[StaticState]):
    """Exclusive CPUs for Guaranteed containers with whole CPUs; others share.

    It replaces the kubelet's static CPU manager. The shared pool consists of all CPUs
    that are not granted, always including the reserved ones. Containers of reserved
    namespaces run on the reserved CPUs only.
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
        """Return the desired pin of every container, by id."""
        pool = self._pool(state)
        return {
            key: self._pin(entry.spec, state.grants.get(key), pool)
            for key, entry in state.ledger.entries.items()
        }

    def pools(self, state: StaticState) -> tuple[PoolUse, ...]:
        """Return the use of exclusive, shared and reserved CPUs."""
        return pool_uses(state, self._free_cpus(state))

    def created(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Place a container that is about to be created."""
        # A container of the same slot is gone, even if its end was not reported.
        left = state.lose(*state.ledger.preceding(spec))
        offer = left.former_places.get((spec.pod, spec.slot), NO_CPUS)
        placement = place(spec, self._free_cpus(left), (offer,))
        return self._decided(left, spec, placement, last_sent=NO_PIN)

    def updated(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            (placement,) = adopt((spec,), {}, self._free_cpus(state)).values()
            return self._decided(state, spec, placement, last_sent=spec.present)
        held = state.held_by(spec.id)
        free = self._free_cpus(state, besides=spec.id)
        if spec.whole_cpus == state.ledger.spec_of(spec.id).whole_cpus:
            placement = StaticPlacement(Rule.UNCHANGED, held)
        elif held and spec.whole_cpus:
            placement = resize(spec, held, free)
        else:
            placement = place(spec, free)
        return self._decided(state, spec, placement, state.ledger.last_sent_to(spec.id))

    def release(self, state: StaticState, container: str) -> StaticState:
        """Remove a container that has stopped."""
        return state.release(container)

    def lose(self, state: StaticState, containers: tuple[str, ...]) -> StaticState:
        """Remove containers that are gone without having stopped."""
        return state.lose(*containers)

    def close(self, state: StaticState, pod: str) -> StaticState:
        """Discard the former places of a pod's containers."""
        return state.close(pod)

    def synchronized(
        self, old: StaticState, event: Synchronized
    ) -> Decision[StaticState]:
        """Place all running containers, where possible on their present CPUs."""
        ordered = oldest_first(event.specs)
        placements = adopt(ordered, old.grants, self._free_cpus(StaticState.empty()))
        state = StaticState(
            ledger=Ledger.of({s.id: Entry(s, s.present) for s in ordered}),
            grants={
                key: self._grant(one.cpus)
                for key, one in placements.items()
                if one.cpus
            },
            former_places=old.former_places_since(event),
        )
        pins = self.pins(state)
        reasons = tuple(_reason(s, placements[s.id], pins[s.id]) for s in ordered)
        return self.settled(state, state, reasons)

    def _decided(
        self,
        state: StaticState,
        spec: ContainerSpec,
        placement: StaticPlacement,
        last_sent: Pin,
    ) -> Decision[StaticState]:
        grant = self._grant(placement.cpus)
        pin = self._pin(spec, grant, self._pool(state.put(spec, grant, last_sent)))
        after = state.put(spec, grant, pin.over(last_sent))
        settled = self.settled(state, after, (_reason(spec, placement, pin),))
        return replace(settled, pin=pin)

    def settled(
        self,
        _before: StaticState,
        after: StaticState,
        reasons: tuple[Reason, ...],
    ) -> Decision[StaticState]:
        """Decide on *after*, with updates for all whose pins differ from the ledger."""
        ledger, updates = after.ledger.settle(self.pins(after))
        return Decision(replace(after, ledger=ledger), reasons, updates=updates)

    def _free_cpus(self, state: StaticState, besides: str = "") -> FreeCpus:
        taken = state.taken - state.held_by(besides)
        return FreeCpus(self.machine, self.settings, self.supply, taken)

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
    # Containers of a pool share one object, so that comparing their pins is cheap.
    return Pin(cpus, mems)


def _reason(spec: ContainerSpec, placement: StaticPlacement, pin: Pin) -> Reason:
    return Reason(placement.rule, spec.id, spec.title, pin.cpus, placement.detail)
