"""The state of the balloons policy: balloons and their containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLayout, MemoryLedger
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus

Slot: TypeAlias = tuple[str, str]
"""A pod's id and a name in it."""

_NOTHING: Final = MilliCpus(0)


class Balloon(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An instance of a balloon type.

    Attributes:
        type: The name of its type.
        index: Its number among those of its type; a new one gets the lowest free.
        cpus: Its CPUs; of a composite one, those of its components.
        reach: CPUs that it also uses while they are idle, that is, in no balloon.
        parts: The names of its components.
        within: The name of the composite balloon that it is a component of.
        members: Ids of its containers.
        load: CPU requests of these, in thousandths of a CPU.
    """

    type: str
    index: int
    cpus: CpuSet = NO_CPUS
    reach: CpuSet = NO_CPUS
    parts: tuple[str, ...] = ()
    within: str = ""
    members: tuple[str, ...] = ()
    load: MilliCpus = _NOTHING

    @property
    def name(self) -> str:
        """Its type and index, such as ``web[0]``."""
        return f"{self.type}[{self.index}]"


class Membership(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The place of a container: its balloon, and what it adds to the load.

    Attributes:
        balloon: The name of its balloon; empty for a container that is not pinned.
        kind: The name of the requested type; its balloon is of another one if there
            was no room.
        request: Its CPU request, in thousandths of a CPU.
        group: The expanded `group_by` template of its type.
        hidden: Whether all but one thread of each core are hidden from it.
    """

    balloon: str
    kind: str = ""
    request: MilliCpus = _NOTHING
    group: str = ""
    hidden: bool = False

    def within(self, balloon: str) -> Membership:
        """Return the same membership in a balloon of this name."""
        return replace(self, balloon=balloon)


PRESERVED: Final = Membership("")
"""Of containers that the policy does not pin."""


class FormerPlace(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Balloon and CPUs of a stopped container, for its restart in the same pod."""

    balloon: str
    cpus: CpuSet


class BalloonsState(msgspec.Struct, frozen=True):
    """All containers and balloons, and the former places of stopped containers.

    Attributes:
        ledger: All containers.
        balloons: By name, oldest first.
        memberships: By container id.
        free: Available CPUs that are in no balloon.
        memory: Memory grants of containers.
        former_places: The place of the last container of a pod's slot.
        unsettled: Whether a decision changed pins in a reply that cannot carry
            updates, so that the next one has to compare all pins.
    """

    ledger: Ledger
    balloons: MappingProxyType[str, Balloon]
    memberships: MappingProxyType[str, Membership]
    free: CpuSet
    memory: MemoryLedger
    former_places: MappingProxyType[Slot, FormerPlace]
    unsettled: bool = False

    @classmethod
    def empty(cls, layout: MemoryLayout, available: CpuSet) -> BalloonsState:
        """Return the state of a node without balloons."""
        nothing: MappingProxyType[str, Membership] = MappingProxyType({})
        return cls(
            ledger=Ledger.of(),
            balloons=MappingProxyType({}),
            memberships=nothing,
            free=available,
            memory=MemoryLedger.counted(layout),
            former_places=MappingProxyType({}),
        )

    def of_type(self, name: str) -> Iterator[Balloon]:
        """Yield the balloons of a type that are no components of others."""
        return (
            one for one in self.balloons.values() if one.type == name and not one.within
        )

    def count_whole(self, name: str) -> int:
        """Count the balloons of a type that are no components of others."""
        return sum(1 for _ in self.of_type(name))

    def count(self, name: str) -> int:
        """Count all balloons of a type, including components of others."""
        return sum(one.type == name for one in self.balloons.values())

    def leaves(self, balloon: Balloon) -> tuple[tuple[Balloon, int], ...]:
        """Return the balloons that have the CPUs, each with its divisor of the load.

        A balloon that is not composite is its only leaf, with divisor 1.
        """
        if not balloon.parts:
            return ((balloon, 1),)
        parts = len(balloon.parts)
        return tuple(
            (leaf, parts * share)
            for name in balloon.parts
            for leaf, share in self.leaves(self.balloons[name])
        )

    def allowed_cpus(self, balloon: Balloon) -> CpuSet:
        """Return a balloon's CPUs and the idle ones that it shares."""
        idle = balloon.reach.bits & self.free.bits
        return CpuSet(balloon.cpus.bits | idle) if idle else balloon.cpus

    def with_balloons(
        self, changed: Iterable[Balloon], free: CpuSet | None = None
    ) -> BalloonsState:
        """Add balloons, or replace those of the same names."""
        # Replaced in place, as a union keeps the order of the balloons.
        new = {one.name: one for one in changed}
        balloons = MappingProxyType(self.balloons | new)
        return replace(
            self, balloons=balloons, free=self.free if free is None else free
        )

    def without_balloons(self, names: Iterable[str]) -> BalloonsState:
        """Remove balloons; the CPUs of those without parts become free."""
        balloons, free = dict(self.balloons), self.free
        for name in names:
            gone = balloons.pop(name)
            if not gone.parts:
                free |= gone.cpus
        return replace(self, balloons=MappingProxyType(balloons), free=free)

    def with_member(self, container: str, membership: Membership) -> BalloonsState:
        """Add a container to its balloon; it must not be in any yet."""
        memberships, balloons = self.memberships.copy(), self.balloons
        memberships[container] = membership
        if membership.balloon:
            old = balloons[membership.balloon]
            members = (*old.members, container)
            load = MilliCpus(old.load + membership.request)
            fuller = replace(old, members=members, load=load)
            balloons = MappingProxyType(balloons | {membership.balloon: fuller})
        return replace(
            self, balloons=balloons, memberships=MappingProxyType(memberships)
        )

    def without_member(self, container: str) -> BalloonsState:
        """Remove a container from its balloon, whose size stays as it is."""
        memberships, balloons = self.memberships.copy(), self.balloons
        membership = memberships.pop(container)
        if membership.balloon:
            old = balloons[membership.balloon]
            members = tuple([one for one in old.members if one != container])
            load = MilliCpus(old.load - membership.request)
            emptier = replace(old, members=members, load=load)
            balloons = MappingProxyType(balloons | {membership.balloon: emptier})
        return replace(
            self, balloons=balloons, memberships=MappingProxyType(memberships)
        )

    def put(self, spec: ContainerSpec, last_sent: Pin) -> BalloonsState:
        """Replace a container's spec and the pin that was last sent for it."""
        return replace(self, ledger=self.ledger.put(spec, last_sent))

    def with_updates_sent(self, ledger: Ledger) -> BalloonsState:
        """Replace the ledger after all pins in it were sent: the state is settled."""
        return replace(self, ledger=ledger, unsettled=False)

    def with_memory(self, memory: MemoryLedger) -> BalloonsState:
        """Replace the memory grants."""
        return replace(self, memory=memory)
