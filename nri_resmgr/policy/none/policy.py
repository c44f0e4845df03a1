"""The policy that pins nothing, accounts for nothing and refuses nothing."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from nri_resmgr.policy.base import PolicyBase, with_ledger
from nri_resmgr.policy.decision import Decision, Reason
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, Synchronized
from nri_resmgr.policy.ledger import Entry, KnowsContainers, Ledger, oldest_first
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.scheduling import SchedulingRules
from nri_resmgr.policy.views import CpuRoom
from nri_resmgr.values import ONE_CPU, CpuSet


class NoneState(KnowsContainers, frozen=True):
    """The containers of the node, each with the pin that it came with."""

    ledger: Ledger = msgspec.field(default_factory=Ledger.of)


class NonePolicy(PolicyBase[NoneState]):
    """Leaves CPUs and memory nodes of all containers as they are.

    What needs no place works as under other policies: classes of scheduling, RDT,
    block I/O and memory; metrics and events. Containers that another policy has
    pinned keep their pins, since a runtime cannot remove any; the ledger remembers
    these, so that a policy that follows finds the containers where they are.
    """

    kind: ClassVar[str] = "NonePolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(("scheduling_class",))
    refuses_strict: ClassVar[bool] = False

    def __init__(self, scheduling: SchedulingRules) -> None:
        self.scheduling = scheduling

    def start(self) -> NoneState:
        """Return the state of a node without containers."""
        return NoneState()

    def pins(self, state: NoneState) -> dict[str, Pin]:
        """Return an empty pin for every container, by id."""
        return dict.fromkeys(state.ledger.entries, NO_PIN)

    def cpu_room(self, state: NoneState, cpus: CpuSet) -> CpuRoom:  # noqa: ARG002 - nothing is granted
        """Return all CPUs: none is granted to anything."""
        return CpuRoom.of(ONE_CPU * len(cpus), ONE_CPU * len(cpus))

    def created(self, state: NoneState, spec: ContainerSpec) -> Decision[NoneState]:
        """Add a container that is about to be created."""
        left = self.lose(state, state.ledger.preceding(spec))
        return self._with(left, spec, NO_PIN, self.scheduling)

    def started(self, state: NoneState, container: str) -> Decision[NoneState]:
        """Set the scheduling class of a container that starts."""
        entry = state.ledger.entries.get(container)
        scheduling = self.scheduling.of(entry.spec) if entry else None
        return Decision(state, (), scheduling=scheduling)

    def updated(self, state: NoneState, spec: ContainerSpec) -> Decision[NoneState]:
        """Note other requests, or a container that was unknown."""
        known = state.ledger.entries.get(spec.id)
        return self._with(state, spec, known.last_sent if known else spec.present)

    def synchronized(
        self,
        old: NoneState,  # noqa: ARG002 - nothing of it is kept
        event: Synchronized,
    ) -> Decision[NoneState]:
        """Replace all containers by those that run."""
        specs = oldest_first(event.specs)
        ledger = Ledger.of({one.id: Entry(one, one.present) for one in specs})
        return Decision(NoneState(ledger), tuple(map(_reason, specs)))

    def release(self, state: NoneState, container: str) -> NoneState:
        """Drop a known container."""
        return with_ledger(state, state.ledger.drop(container))

    def lose(self, state: NoneState, containers: tuple[str, ...]) -> NoneState:
        """Drop known containers; no update is sent, so none was lost with them."""
        return with_ledger(state, state.ledger.drop(*containers))

    def settled(
        self,
        before: NoneState,  # noqa: ARG002 - as above
        after: NoneState,
        reasons: tuple[Reason, ...],
    ) -> Decision[NoneState]:
        """Decide on *after*, without comparing pins: they are never changed."""
        return Decision(after, reasons)

    def _with(
        self,
        state: NoneState,
        spec: ContainerSpec,
        present: Pin,
        scheduling: SchedulingRules | None = None,
    ) -> Decision[NoneState]:
        after = with_ledger(state, state.ledger.put(spec, present))
        found = scheduling.of(spec) if scheduling else None
        return Decision(after, (_reason(spec),), scheduling=found)


def _reason(spec: ContainerSpec) -> Reason:
    source = spec.origin
    return Reason(Rule.NOT_PINNED, spec.id, spec.title, source=source)
