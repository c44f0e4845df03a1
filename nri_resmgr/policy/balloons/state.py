"""The state of the balloons policy: balloons and their containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import KnowsContainers, Ledger
from nri_resmgr.policy.mems import MemoryLayout, MemoryLedger
from nri_resmgr.policy.whole_pods import NOTHING_ANNOUNCED, Announced
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus, StoredValue

Slot: TypeAlias = tuple[str, str]
"""A pod's id and a name in it."""


class Balloon(StoredValue, frozen=True):
    """An instance of a balloon type.

    Attributes:
        index: Its number among those of its type; a new one gets the lowest free.
        cpus: Its CPUs; of a composite one, those of its components.
        reach: CPUs that it also uses while they are idle, that is, in no balloon.
        parts: The names of its components.
        within: The name of the composite balloon that it is a component of.
        members: Ids of its containers.
        rooms: Ids of containers that do not exist yet, and for which room is reserved.
        load: CPU requests of both, in thousandths of a CPU.
    """

    type: str
    index: int
    cpus: CpuSet = NO_CPUS
    reach: CpuSet = NO_CPUS
    parts: tuple[str, ...] = ()
    within: str = ""
    members: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    load: MilliCpus = MilliCpus(0)

    @property
    def name(self) -> str:
        """Its type and index, such as ``web[0]``."""
        return f"{self.type}[{self.index}]"

    @property
    def is_used(self) -> bool:
        """True if it has containers, or will have some."""
        return bool(self.members or self.rooms)


class Membership(StoredValue, frozen=True):
    """The place of a container: its balloon, and what it adds to the load.

    Attributes:
        balloon: The name of its balloon; empty for a container that is not pinned.
        kind: The name of the requested type; its balloon is of another one if there
            was no room.
        request: Its CPU request, in thousandths of a CPU.
        group: The expanded `group_by` template of its type.
        hidden: Whether all but one thread of each core are hidden from it.
        fell_back: Whether it is there because no balloon had room for it.
    """

    balloon: str
    kind: str = ""
    request: MilliCpus = MilliCpus(0)
    group: str = ""
    hidden: bool = False
    fell_back: bool = False


PRESERVED: Final = Membership("")
"""Of containers that the policy does not pin."""


class FormerPlace(StoredValue, frozen=True):
    """Balloon and CPUs of a stopped container, for its restart in the same pod."""

    balloon: str
    cpus: CpuSet


class ReservedRoom(StoredValue, frozen=True):
    """Room in a balloon for a container of a pod, until it is created."""

    spec: ContainerSpec
    balloon: str


_NO_ROOMS: Final[Mapping[Slot, ReservedRoom]] = MappingProxyType({})


class BalloonsState(KnowsContainers, frozen=True):
    """All containers and balloons, and places kept for future containers.

    Attributes:
        balloons: By name, oldest first.
        memberships: By container id.
        free: Available CPUs that are in no balloon.
        memory: Memory grants of containers.
        former_places: The place of the last container of a pod's slot.
        reserved_rooms: Rooms of containers that are expected, by pod and name.
        announced: The containers of pods that were placed as a whole.
        unsettled: Whether a decision changed pins in a reply that cannot carry
            updates, so that the next one has to compare all pins.
    """

    balloons: MappingProxyType[str, Balloon]
    memberships: MappingProxyType[str, Membership]
    free: CpuSet
    memory: MemoryLedger
    former_places: MappingProxyType[Slot, FormerPlace]
    reserved_rooms: Mapping[Slot, ReservedRoom] = _NO_ROOMS
    announced: Announced = NOTHING_ANNOUNCED
    unsettled: bool = False

    @classmethod
    def empty(cls, layout: MemoryLayout, available: CpuSet) -> BalloonsState:
        """Return the state of a node without balloons."""
        return cls(
            ledger=Ledger.of(),
            balloons=MappingProxyType({}),
            memberships=MappingProxyType({}),
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

    def outermost(self, balloon: Balloon) -> Balloon:
        """Return the composite balloon that a balloon is in, or itself."""
        while balloon.within:
            balloon = self.balloons[balloon.within]
        return balloon

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

    def without_balloon(self, name: str) -> BalloonsState:
        """Remove a balloon; its CPUs become free if it has no parts."""
        balloons = dict(self.balloons)
        gone = balloons.pop(name)
        free = self.free if gone.parts else self.free | gone.cpus
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

    def with_room(self, slot: Slot, room: ReservedRoom) -> BalloonsState:
        """Reserve room in a balloon, whose size stays as it is."""
        old = self.balloons[room.balloon]
        fuller = replace(
            old,
            rooms=(*old.rooms, room.spec.id),
            load=MilliCpus(old.load + room.spec.request),
        )
        rooms = {**self.reserved_rooms, slot: room}
        return replace(self.with_balloons((fuller,)), reserved_rooms=rooms)

    def without_room(self, slot: Slot) -> BalloonsState:
        """Drop a reserved room; the size of its balloon stays as it is."""
        room = self.reserved_rooms[slot]
        old = self.balloons[room.balloon]
        emptier = replace(
            old,
            rooms=tuple(one for one in old.rooms if one != room.spec.id),
            load=MilliCpus(old.load - room.spec.request),
        )
        left = {key: one for key, one in self.reserved_rooms.items() if key != slot}
        return replace(self.with_balloons((emptier,)), reserved_rooms=left)

    def put(self, spec: ContainerSpec, last_sent: Pin) -> BalloonsState:
        """Replace a container's spec and the pin that was last sent for it."""
        return replace(self, ledger=self.ledger.put(spec, last_sent))
