"""Balloons and who is in them: the state that decisions replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

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
        index: The lowest that was free among those of its type.
        cpus: What belongs to it; of a composite one, to its components.
        reach: Where it uses CPUs of no balloon besides.
        parts: The names of its components.
        within: The name of the composite balloon that it is a component of.
        members: The containers in it, by id.
        load: What these ask for, in thousandths of a CPU.
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
        """The name by which it is known: its type and index."""
        return f"{self.type}[{self.index}]"

    def holding(self, members: tuple[str, ...], load: int) -> Balloon:
        """Return the same balloon with other containers in it."""
        return self._replaced(self.cpus, self.reach, members, load)

    def sized(self, cpus: CpuSet, reach: CpuSet) -> Balloon:
        """Return the same balloon with other CPUs."""
        return self._replaced(cpus, reach, self.members, self.load)

    def _replaced(
        self, cpus: CpuSet, reach: CpuSet, members: tuple[str, ...], load: int
    ) -> Balloon:
        return Balloon(
            self.type,
            self.index,
            cpus,
            reach,
            self.parts,
            self.within,
            members,
            MilliCpus(load),
        )


class Seat(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a container is.

    Attributes:
        balloon: The name of its balloon; empty for who is left alone.
        kind: The name of the type that it asked for, which its balloon may not be of
            if there was no room.
        request: What it counts for there, in thousandths of a CPU.
        group: What its type's template expands to, where there is one.
        hidden: Whether it sees one thread of each core.
    """

    balloon: str
    kind: str = ""
    request: MilliCpus = _NOTHING
    group: str = ""
    hidden: bool = False

    def within(self, balloon: str) -> Seat:
        """Return the same seat in a balloon."""
        return Seat(balloon, self.kind, self.request, self.group, self.hidden)


LEFT_ALONE: Final = Seat("")
"""Of containers that are none of ours."""


class Vacated(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Where a container was that may come again."""

    balloon: str
    cpus: CpuSet


class BalloonsState(msgspec.Struct, frozen=True):
    """Containers, balloons, and places to come back to.

    Attributes:
        ledger: All containers.
        balloons: By name, older before younger.
        seats: By container id.
        free: Available CPUs that are in no balloon.
        memory: What each container has of the memory, by id.
        vacated: Where the last container of a pod's slot was.
        unsettled: Whether a decision changed pins in a reply that has no room
            for updates, so that all of them have to be looked at.
    """

    ledger: Ledger
    balloons: MappingProxyType[str, Balloon]
    seats: MappingProxyType[str, Seat]
    free: CpuSet
    memory: MemoryLedger
    vacated: MappingProxyType[Slot, Vacated]
    unsettled: bool = False

    @classmethod
    def empty(cls, layout: MemoryLayout, available: CpuSet) -> BalloonsState:
        """Return the state of a node without balloons."""
        nothing: MappingProxyType[str, Seat] = MappingProxyType({})
        return cls(
            ledger=Ledger.of(),
            balloons=MappingProxyType({}),
            seats=nothing,
            free=available,
            memory=MemoryLedger.counted(layout),
            vacated=MappingProxyType({}),
        )

    def of_type(self, name: str) -> Iterator[Balloon]:
        """Go through the balloons of a type that are on their own."""
        return (
            one for one in self.balloons.values() if one.type == name and not one.within
        )

    def count(self, name: str) -> int:
        """Count all balloons of a type, components of others too."""
        return sum(one.type == name for one in self.balloons.values())

    def leaves(self, balloon: Balloon) -> tuple[tuple[Balloon, int], ...]:
        """Return the balloons that the CPUs are in, and into how many shares.

        A balloon that is not composite is its only leaf, with all of the load.
        """
        if not balloon.parts:
            return ((balloon, 1),)
        parts = len(balloon.parts)
        return tuple(
            (leaf, parts * share)
            for name in balloon.parts
            for leaf, share in self.leaves(self.balloons[name])
        )

    def with_balloons(
        self, changed: Iterable[Balloon], free: CpuSet | None = None
    ) -> BalloonsState:
        """Put balloons in place of those of the same names, or beside the others."""
        new = {one.name: one for one in changed}
        balloons = MappingProxyType(self.balloons | new)
        left = self.free if free is None else free
        return self._replaced(self.ledger, balloons, self.seats, left)

    def without_balloons(self, names: Iterable[str]) -> BalloonsState:
        """Take balloons away; the CPUs of those that have no parts are free."""
        balloons, free = dict(self.balloons), self.free
        for name in names:
            gone = balloons.pop(name)
            if not gone.parts:
                free |= gone.cpus
        return msgspec.structs.replace(
            self, balloons=MappingProxyType(balloons), free=free
        )

    def sit(self, container: str, seat: Seat) -> BalloonsState:
        """Count a container where it is; it must not be anywhere yet."""
        seats, balloons = self.seats.copy(), self.balloons
        seats[container] = seat
        if seat.balloon:
            old = balloons[seat.balloon]
            members = (*old.members, container)
            fuller = old.holding(members, old.load + seat.request)
            balloons = MappingProxyType(balloons | {seat.balloon: fuller})
        return self._replaced(self.ledger, balloons, MappingProxyType(seats), self.free)

    def get_up(self, container: str) -> BalloonsState:
        """Take a container out of its balloon, whose size stays as it is."""
        seats, balloons = self.seats.copy(), self.balloons
        seat = seats.pop(container)
        if seat.balloon:
            old = balloons[seat.balloon]
            members = tuple([one for one in old.members if one != container])
            emptier = old.holding(members, old.load - seat.request)
            balloons = MappingProxyType(balloons | {seat.balloon: emptier})
        return self._replaced(self.ledger, balloons, MappingProxyType(seats), self.free)

    def put(self, spec: ContainerSpec, told: Pin) -> BalloonsState:
        """Note what is known of a container and what the runtime knows of it."""
        ledger = self.ledger.put(spec, told)
        return self._replaced(ledger, self.balloons, self.seats, self.free)

    def told(self, ledger: Ledger) -> BalloonsState:
        """Note what all have been told: from now on only changes are looked for."""
        return BalloonsState(
            ledger,
            self.balloons,
            self.seats,
            self.free,
            self.memory,
            self.vacated,
        )

    def promised(self, memory: MemoryLedger) -> BalloonsState:
        """Replace what each container has of the memory."""
        return BalloonsState(
            self.ledger,
            self.balloons,
            self.seats,
            self.free,
            memory,
            self.vacated,
            self.unsettled,
        )

    def _replaced(
        self,
        ledger: Ledger,
        balloons: MappingProxyType[str, Balloon],
        seats: MappingProxyType[str, Seat],
        free: CpuSet,
    ) -> BalloonsState:
        return BalloonsState(
            ledger,
            balloons,
            seats,
            free,
            self.memory,
            self.vacated,
            self.unsettled,
        )
