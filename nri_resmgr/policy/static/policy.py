"""The static policy: answers to events, and what is shown of its pools."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Final

from msgspec.structs import replace

from nri_resmgr.policy.advice import accepts, sentence
from nri_resmgr.policy.base import PolicyBase
from nri_resmgr.policy.cpu_pools import nodes_near, with_use
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.errors import ExclusiveCpusShort
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Event,
    Pin,
    PodCreated,
    Synchronized,
    pinning,
)
from nri_resmgr.policy.ledger import Entry, Ledger, oldest_first
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.static.advice import helps
from nri_resmgr.policy.static.place import (
    FreeCpus,
    StaticPlacement,
    adopt,
    place,
    place_again,
    place_pod,
    resize,
)
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import ReservedPlace, StaticState
from nri_resmgr.policy.views import CpuRoom, PoolUse, Reservation
from nri_resmgr.policy.whole_pods import (
    DeviatingContainer,
    PodPlacement,
    check_announced,
    deviation,
    mode_for,
    names_announced,
    reasons_of_reserved,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, PolicyError

_EXCLUSIVE: Final = "exclusive CPUs"
_SHARED: Final = "shared CPUs"
_RESERVED: Final = "reserved CPUs"


class StaticPolicy(PolicyBase[StaticState]):
    """Exclusive CPUs for Guaranteed containers with whole CPUs; others share.

    It replaces the kubelet's static CPU manager. The shared pool consists of all CPUs
    that are not granted, always including the reserved ones. Containers of reserved
    namespaces run on the reserved CPUs only.
    """

    kind: ClassVar[str] = "StaticPolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(
        ("isolated", "preserve_cpus", "preserve_memory", "reserved", "shared")
    )

    def __init__(self, machine: Machine, settings: StaticSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.supply = Supply.of(settings, machine)

    def with_settings(self, settings: StaticSettings) -> StaticPolicy:
        """Return the policy of the same machine with other settings."""
        return type(self)(self.machine, settings)

    def advise(self, error: PolicyError, state: StaticState, event: Event) -> None:
        """Add to a refusal what would help."""
        if isinstance(error, ExclusiveCpusShort):
            tried = partial(accepts, self, state, event)
            error.advice = sentence(helps(error, event, tried))

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

    def publishes(self, state: StaticState, container: str) -> bool:
        """Return whether a container's CPUs are published to it."""
        if container not in state.ledger or not self.settings.publish_resources:
            return False
        spec = state.ledger.spec_of(container)
        return self.settings.pin_cpus and not spec.preferences.preserve_cpus

    def resources_of(self, state: StaticState, container: str) -> Resources | None:
        """Return the CPUs that are published to a container."""
        if not self.publishes(state, container):
            return None
        own = state.held_by(container)
        # What was sent is what is desired, in each decided state.
        return Resources(
            shared=state.ledger.last_sent_to(container).cpus - own,
            isolated=own & self.machine.isolated,
            exclusive=own - self.machine.isolated,
        )

    def republishes(self, before: StaticState, after: StaticState) -> Iterable[str]:  # noqa: ARG002 - grants and pins change together
        """Return containers whose publication may differ with equal pins: none."""
        return ()

    def reservations(self, state: StaticState) -> tuple[Reservation, ...]:
        """Return the CPUs that are reserved for containers of present pods."""
        return tuple(
            Reservation(
                one.spec, _EXCLUSIVE, one.cpus, nodes_near(one.cpus, self.machine)
            )
            for one in state.reserved_places.values()
        )

    def exclusive_cpus(self, state: StaticState) -> dict[str, CpuSet]:
        """Return the CPUs of containers that share none of theirs, by id."""
        if not self.settings.pin_cpus:
            return {}
        return {key: grant.cpus for key, grant in state.grants.items() if grant.cpus}

    def cpu_room(self, state: StaticState, cpus: CpuSet) -> CpuRoom:
        """Return the CPUs that can be exclusive.

        Isolated ones are among them if they complete grants of ordinary ones.
        """
        mine = self.supply.ordinary
        if self.settings.borrow_isolated:
            mine |= self.supply.isolated
        mine &= cpus
        return CpuRoom.of(ONE_CPU * len(mine), ONE_CPU * len(mine - state.taken))

    def pools(self, state: StaticState) -> tuple[PoolUse, ...]:
        """Return the use of exclusive, shared and reserved CPUs."""
        supply, taken, grants = self.supply, state.taken, state.grants
        unused, shared = supply.isolated - taken, supply.shared - taken
        exclusive = PoolUse(
            kind="exclusive",
            name=_EXCLUSIVE,
            cpus=taken | unused,
            isolated=unused,
            exclusive=taken,
            capacity=MilliCpus(ONE_CPU * len(supply.ordinary | supply.isolated)),
            granted=MilliCpus(ONE_CPU * len(taken)),
            free=MilliCpus(ONE_CPU * len(supply.ordinary - taken)),
            mems=nodes_near(taken, self.machine),
            containers=tuple(key for key in state.ledger.entries if key in grants),
        )
        others = PoolUse(
            kind="shared",
            name=_SHARED,
            cpus=shared,
            shared=shared - supply.reserved,
            reserved=shared & supply.reserved,
            mems=supply.shared_mems,
        )
        reserved = PoolUse(
            kind="reserved",
            name=_RESERVED,
            cpus=supply.reserved,
            within=others.name if self.settings.shares_reserved else "",
            reserved=supply.reserved,
            mems=supply.reserved_mems,
        )
        specs: dict[bool, list[ContainerSpec]] = {True: [], False: []}
        for key, entry in state.ledger.entries.items():
            if key not in grants and not entry.spec.preferences.preserve_cpus:
                is_reserved = self.settings.reserves_for(entry.spec)
                specs[is_reserved].append(entry.spec)
        return exclusive, *(
            with_use(one, sum(s.request for s in of), (s.id for s in of))
            for one, of in ((others, specs[False]), (reserved, specs[True]))
        )

    def pool_of(self, state: StaticState, container: str) -> str:
        """Return the CPUs that a container is counted at; empty if it keeps its own."""
        spec = state.ledger.spec_of(container)
        return self._pool_name(spec, has_grant=container in state.grants)

    def created(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Place a container that is about to be created."""
        # A container of the same slot is gone, even if its end was not reported.
        left = self.lose(state, state.ledger.preceding(spec))
        if self.settings.place_pods is PodPlacement.STRICT and self._may_share(spec):
            check_announced(spec, left.announced)
        slot = (spec.pod, spec.name)
        reserved = left.reserved_places.get(slot)
        left = left.without_place(slot)
        offers = [left.former_places.get((spec.pod, spec.slot), NO_CPUS)]
        if reserved:
            offers.insert(0, reserved.cpus)
        placement = place(spec, self._free_cpus(left), offers)
        if reserved and placement.rule is not Rule.OLD_PLACE:
            # It asks for other amounts.
            if self.settings.place_pods is PodPlacement.STRICT:
                raise DeviatingContainer(spec.title)
            placement = replace(placement, detail=deviation(spec.title))
        return self._decided(left, spec, placement, last_sent=NO_PIN)

    def _may_share(self, spec: ContainerSpec) -> bool:
        """Return whether a container is neither preserved nor on reserved CPUs."""
        return not (spec.preferences.preserve_cpus or self.settings.reserves_for(spec))

    def pod_created(
        self, state: StaticState, event: PodCreated
    ) -> Decision[StaticState]:
        """Reserve exclusive CPUs for all containers of a pod, if it is to be."""
        mode, pod = mode_for(event, self.settings.place_pods), event.pod
        specs = [
            replace(spec, id=f"{pod}/{spec.name}", pod=pod)
            for spec in event.expected
            if self.settings.pool_rule(spec) is None
        ]
        if mode is PodPlacement.OFF or not specs:
            return Decision(state, ())
        left, title = state.close(pod), specs[0].title.rpartition("/")[0]
        try:
            found = place_pod(specs, title, self._free_cpus(left))
        except PolicyError as error:
            if mode is PodPlacement.STRICT:
                raise
            reason = Reason(Rule.FELL_BACK, pod, title, detail=str(error))
            return Decision(state, (reason,))
        places = {(pod, one.name): ReservedPlace(one, found[one.name]) for one in specs}
        after = left.reserve(places, pod, names_announced(event))
        reasons = reasons_of_reserved(pod, _EXCLUSIVE, self.reservations(after))
        return self.settled(state, after, reasons)

    def updated(self, state: StaticState, spec: ContainerSpec) -> Decision[StaticState]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            nothing, free = StaticState.empty(), self._free_cpus(state)
            (placement,) = adopt((spec,), nothing, free).values()
            return self._decided(state, spec, placement, last_sent=spec.present)
        held = state.held_by(spec.id)
        free = self._free_cpus(state, besides=spec.id)
        count = self.settings.count_for(spec)
        if count == self.settings.count_for(state.ledger.spec_of(spec.id)):
            placement = StaticPlacement(Rule.UNCHANGED, held)
        elif held and count:
            placement = resize(spec, held, free)
        else:
            placement = place(spec, free)
        return self._decided(state, spec, placement, state.ledger.last_sent_to(spec.id))

    def release(self, state: StaticState, container: str) -> StaticState:
        """Drop a container; its CPUs are kept for its successor in the same pod."""
        spec, former_places = state.ledger.spec_of(container), state.former_places
        if spec.slot and container in state.grants:
            mine = {(spec.pod, spec.slot): state.held_by(container)}
            former_places = {**former_places, **mine}
        return replace(
            state,
            ledger=state.ledger.drop(container),
            grants={key: one for key, one in state.grants.items() if key != container},
            former_places=former_places,
        )

    def close(self, state: StaticState, pod: str) -> StaticState:
        """Discard what is kept for a pod: former and reserved places."""
        return state.close(pod)

    def synchronized(
        self, old: StaticState, event: Synchronized
    ) -> Decision[StaticState]:
        """Place all running containers, where possible on their present CPUs."""
        ordered = oldest_first(event.specs)
        placements = adopt(ordered, old, self._free_cpus(StaticState.empty()))
        grants = {
            key: self._grant(one.cpus) for key, one in placements.items() if one.cpus
        }
        exclusive = self.supply.ordinary | self.supply.isolated
        granted = CpuSet.union(one.cpus for one in grants.values())
        kept = old.places_since(event, granted | (self.machine.present - exclusive))
        state = replace(
            kept,
            ledger=Ledger.of({s.id: Entry(s, s.present) for s in ordered}),
            grants=grants,
            former_places=old.former_places_since(event),
        )
        pins = self.pins(state)
        reasons = tuple(
            self.reason_of(s, placements[s.id], pins[s.id]) for s in ordered
        )
        return self.settled(state, state, reasons)

    def _decided(
        self,
        state: StaticState,
        spec: ContainerSpec,
        placement: StaticPlacement,
        last_sent: Pin,
    ) -> Decision[StaticState]:
        grant = self._grant(placement.cpus)
        # First those that fell back: they can take CPUs that this one shares.
        placed = state.put(spec, grant, last_sent)
        placed, more = self._improved(placed, besides=spec.id)
        pin = self.pin_of(placed, spec)
        after = placed.put(spec, grant, pin.over(last_sent))
        reasons = (self.reason_of(spec, placement, pin), *more)
        return replace(super().settled(state, after, reasons), pin=pin)

    def settled(
        self,
        before: StaticState,
        after: StaticState,
        reasons: tuple[Reason, ...],
    ) -> Decision[StaticState]:
        """Decide on *after*; CPUs may be free in it for containers that fell back."""
        after, more = self._improved(after)
        return super().settled(before, after, (*reasons, *more))

    def _improved(
        self, state: StaticState, besides: str = ""
    ) -> tuple[StaticState, tuple[Reason, ...]]:
        """Grant CPUs to those that fell back, in the order in which they came.

        The container that the decision is about stays: that is *besides*.
        """
        reasons = []
        for key, entry in state.ledger.entries.items():
            spec = entry.spec
            if key in state.grants or key == besides:
                continue
            if not self.settings.count_for(spec):
                continue
            free = self._free_cpus(state)
            if found := place_again(spec, free):
                grant = self._grant(found.cpus)
                state = replace(state, grants={**state.grants, key: grant})
                pin = self.pin_of(state, spec)
                reasons.append(self.reason_of(spec, found, pin))
        return state, tuple(reasons)

    def reason_of(
        self, spec: ContainerSpec, placement: StaticPlacement, pin: Pin
    ) -> Reason:
        """Return the reason for a placement."""
        rule, detail = placement.rule, placement.detail
        return Reason(
            rule,
            spec.id,
            spec.title,
            pin.cpus,
            detail,
            pin.mems,
            pool=self._pool_name(spec, has_grant=bool(placement.cpus)),
            source=spec.origin,
        )

    def pin_of(self, state: StaticState, spec: ContainerSpec) -> Pin:
        """Return the desired pin of one container."""
        return self._pin(spec, state.grants.get(spec.id), self._pool(state))

    def _pool_name(self, spec: ContainerSpec, *, has_grant: bool) -> str:
        if has_grant:
            return _EXCLUSIVE
        if spec.preferences.preserve_cpus:
            return ""
        return _RESERVED if self.settings.reserves_for(spec) else _SHARED

    def _free_cpus(self, state: StaticState, besides: str = "") -> FreeCpus:
        taken = state.taken - state.held_by(besides)
        return FreeCpus(self.machine, self.settings, self.supply, taken)

    def _grant(self, cpus: CpuSet) -> Pin:
        return Pin(cpus, nodes_near(cpus, self.machine)) if cpus else NO_PIN

    def _pool(self, state: StaticState) -> Pin:
        cpus = self.supply.shared - state.taken
        return pinning(cpus.bits, self.supply.shared_mems.bits, 0)

    def _pin(self, spec: ContainerSpec, grant: Pin | None, pool: Pin) -> Pin:
        pin = grant or pool
        if not grant and self.settings.reserves_for(spec):
            cpus, mems = self.supply.reserved, self.supply.reserved_mems
            pin = pinning(cpus.bits, mems.bits, 0)
        return self._as_allowed(spec, pin)

    def _as_allowed(self, spec: ContainerSpec, pin: Pin) -> Pin:
        """Leave out what the settings or annotations exclude from pinning."""
        preferences = spec.preferences
        if preferences.preserve_cpus:
            # Its CPUs may be any, so that no memory is near.
            return NO_PIN
        pins_memory = self.settings.pin_memory and not preferences.preserve_memory
        if self.settings.pin_cpus and pins_memory:
            return pin
        return pinning(
            pin.cpus.bits if self.settings.pin_cpus else 0,
            pin.mems.bits if pins_memory else 0,
            pin.shares if self.settings.pin_cpus else 0,
        )
