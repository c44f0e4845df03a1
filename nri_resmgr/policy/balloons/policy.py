"""The balloons policy: answers to events, and what is published and shown."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from msgspec.structs import replace

from nri_resmgr.policy.balloons.adopt import adopt, adopt_one
from nri_resmgr.policy.balloons.choose_type import scheduling_of
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.host_use import host_use_of
from nri_resmgr.policy.balloons.lifecycle import create_given, create_minimum
from nri_resmgr.policy.balloons.memory import grant_memory
from nri_resmgr.policy.balloons.pins import extend_memory, pin_of, pins_of, settle
from nri_resmgr.policy.balloons.place import (
    BalloonPlacement,
    former_places_since,
    lose,
    move,
    place,
    release,
)
from nri_resmgr.policy.balloons.pool_use import pool_uses
from nri_resmgr.policy.balloons.settings import BalloonsSettings
from nri_resmgr.policy.balloons.state import BalloonsState as State
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


class BalloonsPolicy(PolicyBase[State]):
    """Containers in balloons, which grow and shrink with their requests.

    No CPU is in two balloons. Idle CPUs, those in no balloon, are shared by balloons
    whose types say so.
    """

    kind: ClassVar[str] = "BalloonsPolicy"

    def __init__(self, machine: Machine, settings: BalloonsSettings) -> None:
        self.machine = machine
        self.settings = settings
        self.context = Context(machine, settings)

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
        exclusive = allowed & balloon.cpus if len(balloon.members) == 1 else NO_CPUS
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

    def pools(self, state: State) -> tuple[PoolUse, ...]:
        """Return the use of every balloon and of the idle CPUs."""
        return pool_uses(state, self.context)

    def host_use(self, state: State) -> HostUse:
        """Return the CPUs and containers that host settings follow."""
        return host_use_of(state, self.context)

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
        left = lose(state, state.ledger.preceding(spec), self.context)
        # A new container has the shares of its OCI spec, and no pinning yet.
        last_sent = pinning(0, 0, spec.present.shares)
        old = left.former_places.get((spec.pod, spec.slot)) if spec.slot else None
        placement = place(spec, left.put(spec, last_sent), self.context, old)
        decision = self._decided(state, spec, placement, last_sent)
        return replace(
            decision,
            pin=decision.pin.since(last_sent),
            scheduling=scheduling_of(spec, self.settings),
        )

    def updated(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Resize a container, or adopt one that is unknown."""
        if spec.id not in state.ledger:
            return self._adopt_one(state, spec)
        known = state.ledger.entries[spec.id]
        left = state.put(spec, known.last_sent)
        if not state.memberships[spec.id].balloon:
            placement = BalloonPlacement(state=left, rule=Rule.PRESERVED)
        elif spec.request == state.memberships[spec.id].request:
            placement = BalloonPlacement(state=left, rule=Rule.UNCHANGED)
        else:
            placement = move(spec, left, self.context)
        # The whole pin, even if it was sent: the kubelet may have changed it since.
        return self._decided(state, spec, placement, known.last_sent)

    def _adopt_one(self, state: State, spec: ContainerSpec) -> Decision[State]:
        """Adopt a running container whose creation was not reported."""
        # All pins are compared: its memory may widen that of any container.
        present = replace(state.put(spec, spec.present), unsettled=True)
        placement = adopt_one(spec, present, self.context)
        return self._decided(state, spec, placement, spec.present)

    def _decided(
        self,
        before: State,
        spec: ContainerSpec,
        found: BalloonPlacement,
        last_sent: Pin,
    ) -> Decision[State]:
        """Grant memory to a placed container, and collect the updates for others."""
        state, moved = grant_memory(spec, found.state, self.context)
        state, affected = extend_memory(before, state, self.context)
        pin = pin_of(spec, state, self.context)
        state = state.put(spec, pin.over(last_sent))
        others = [key for key in (affected | moved) if key != spec.id]
        reason = self._reason(spec, found, pin, state)
        state, updates = settle(state, others, self.context)
        return Decision(state, (reason,), pin, updates)

    def settled(
        self, before: State, after: State, reasons: tuple[Reason, ...]
    ) -> Decision[State]:
        """Decide on *after*, with updates for containers whose balloons changed."""
        after, affected = extend_memory(before, after, self.context)
        after, updates = settle(after, affected, self.context)
        return Decision(after, reasons, updates=updates)

    def release(self, state: State, container: str) -> State:
        """Remove a container that has stopped."""
        return release(state, container, self.context)

    def lose(self, state: State, containers: tuple[str, ...]) -> State:
        """Remove containers that are gone without having stopped."""
        left, _ = extend_memory(
            state, lose(state, containers, self.context), self.context
        )
        return left

    def close(self, state: State, pod: str) -> State:
        """Discard the former places of a pod's containers."""
        kept = {key: one for key, one in state.former_places.items() if key[0] != pod}
        return replace(state, former_places=MappingProxyType(kept))

    def pool_of(self, state: State, container: str) -> str:
        """Return the name of a container's balloon."""
        return state.memberships[container].balloon

    def synchronized(self, old: State, event: Synchronized) -> Decision[State]:
        """Place all running containers, where possible on their present CPUs."""
        ordered = oldest_first(event.specs)
        former_places = former_places_since(old, event)
        state, placed = adopt(ordered, old, self.context)
        state = replace(state, former_places=former_places)
        pins = pins_of(placed, state, self.context)
        reasons = tuple(
            self._reason(
                one, _as_kept(placed[one.id], pins[one.id], one), pins[one.id], state
            )
            for one in ordered
        )
        # The runtime may have lost any pin, so that all of them are compared.
        unsettled = replace(state, unsettled=True)
        return self.settled(state, unsettled, reasons)

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
            source=str(spec.source),
        )


def _as_kept(
    found: BalloonPlacement, pin: Pin, spec: ContainerSpec
) -> BalloonPlacement:
    """Replace the rule by `KEPT` for a container whose CPUs stay the same."""
    same = pin.cpus and pin.cpus == spec.present.cpus
    return replace(found, rule=Rule.KEPT) if same else found
