"""Where a container goes: to CPUs of its own, or to a pool, and why."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.policy.cpus import (
    CpuPick,
    CpuRequest,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import ExclusiveCpusShort, OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError, QosClass


class Placement(msgspec.Struct, frozen=True):
    """CPUs for one container alone, or none and a rule that names its pool."""

    rule: Rule
    cpus: CpuSet = NO_CPUS
    detail: str = ""


class Room(msgspec.Struct, frozen=True):
    """What can be granted at one moment.

    Attributes:
        taken: CPUs granted to other containers than the one being placed.
    """

    machine: Machine
    settings: StaticSettings
    supply: Supply
    taken: CpuSet

    @property
    def ordinary(self) -> CpuSet:
        """Ordinary CPUs that nobody has to himself."""
        return self.supply.ordinary - self.taken

    @property
    def isolated(self) -> CpuSet:
        """Isolated CPUs that nobody has; none where they may not be used."""
        if not self.settings.prefer_isolated:
            return NO_CPUS
        return self.supply.isolated - self.taken

    def can_grant(self, cpus: CpuSet, count: int) -> bool:
        """Tell whether exactly *cpus* are a legal grant for *count* CPUs."""
        if len(cpus) != count or not cpus:
            return False
        return cpus <= self.ordinary or (count == 1 and cpus <= self.isolated)


def pool_rule(spec: ContainerSpec, settings: StaticSettings) -> Rule | None:
    """Tell why a container shares CPUs; None when it asks for its own."""
    if settings.reserves_for(spec.namespace):
        return Rule.RESERVED_NAMESPACE
    if spec.whole_cpus:
        return None
    if spec.qos is QosClass.GUARANTEED:
        return Rule.NOT_WHOLE_CPUS
    return Rule.NOT_GUARANTEED


def place(spec: ContainerSpec, room: Room, offers: Iterable[CpuSet] = ()) -> Placement:
    """Find a place for a container that has none.

    Args:
        spec: The container.
        room: What can be granted to it.
        offers: Places to take as they are, best first, if they are legal.

    Raises:
        ExclusiveCpusShort: It asks for more CPUs than are free, and the
            settings say to refuse.
    """
    rule = pool_rule(spec, room.settings)
    if rule is not None:
        return Placement(rule)
    for offer in offers:
        if room.can_grant(offer, spec.whole_cpus):
            return Placement(Rule.OLD_PLACE, offer)
    try:
        return _allocate(spec, room)
    except PolicyError as refusal:
        if room.settings.on_failure is OnFailure.REFUSE:
            raise
        return Placement(Rule.FELL_BACK, detail=str(refusal))


def resize(spec: ContainerSpec, held: CpuSet, room: Room) -> Placement:
    """Find CPUs for a container that holds *held* and asks for another number.

    Growing stays in place while that costs no further node; else the container
    moves, if it touches fewer nodes elsewhere. Failing to grow is always refused,
    whatever the settings say: the container would lose what it has.

    Raises:
        ExclusiveCpusShort: The node cannot give as many; *held* stays valid.
    """
    count = spec.whole_cpus
    if count <= len(held):
        pick = release_cpus(held, len(held) - count, room.machine)
        return Placement(Rule.SHRUNK_IN_PLACE, held - pick.cpus, pick.level)
    if not held <= room.supply.ordinary:
        return msgspec.structs.replace(_allocate(spec, room, held), rule=Rule.MOVED)
    if len(room.ordinary) < count:
        raise _short(spec, room, held)
    grown = _pick(count - len(held), room.ordinary - held, room.machine, held)
    fresh = _pick(count, room.ordinary, room.machine)
    stay = room.machine.nodes_of(held | grown.cpus)
    if len(room.machine.nodes_of(fresh.cpus)) < len(stay):
        return Placement(Rule.MOVED, fresh.cpus, fresh.level)
    return Placement(Rule.GROWN_IN_PLACE, held | grown.cpus, grown.level)


def _allocate(spec: ContainerSpec, room: Room, held: CpuSet = NO_CPUS) -> Placement:
    count = spec.whole_cpus
    if count == 1 and room.isolated:
        pick = allocate_cpus(CpuRequest(count=1, free=room.isolated), room.machine)
        return Placement(Rule.ISOLATED_CPU, pick.cpus, pick.level)
    if len(room.ordinary) < count:
        raise _short(spec, room, held)
    pick = _pick(count, room.ordinary, room.machine)
    return Placement(Rule.WHOLE_CPUS, pick.cpus, pick.level)


def _pick(
    count: int, free: CpuSet, machine: Machine, held: CpuSet = NO_CPUS
) -> CpuPick:
    """Take CPUs of one kind of core where one kind has enough, strongest first."""
    for kind in machine.kinds:
        alike = machine.cpus_of_kind(kind)
        if held <= alike and len(free & alike) >= count:
            free &= alike
            break
    return allocate_cpus(CpuRequest(count=count, free=free, held=held), machine)


def _short(spec: ContainerSpec, room: Room, held: CpuSet) -> ExclusiveCpusShort:
    return ExclusiveCpusShort(
        title=spec.title or spec.id,
        wanted=spec.whole_cpus,
        free=room.ordinary - held,
        taken=room.taken & room.supply.ordinary,
        reserved=room.supply.reserved,
        isolated=room.isolated,
        held=held,
    )
