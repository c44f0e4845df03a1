"""Placement of containers: on exclusive CPUs or in a shared pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.cpus import (
    CpuPick,
    CpuRequest,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import ExclusiveCpusShort, OnFailure
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError, QosClass


class StaticPlacement(msgspec.Struct, frozen=True):
    """The decision on a container: exclusive CPUs, or none and the pool's rule."""

    rule: Rule
    cpus: CpuSet = NO_CPUS
    detail: str = ""


class FreeCpus(msgspec.Struct, frozen=True):
    """The CPUs that can be granted to a container.

    Attributes:
        taken: CPUs granted to other containers.
    """

    machine: Machine
    settings: StaticSettings
    supply: Supply
    taken: CpuSet

    @property
    def ordinary(self) -> CpuSet:
        """Ordinary CPUs that are not granted."""
        return self.supply.ordinary - self.taken

    @property
    def isolated(self) -> CpuSet:
        """Isolated CPUs that are not granted; none if the settings exclude them."""
        if not self.settings.prefer_isolated:
            return NO_CPUS
        return self.supply.isolated - self.taken

    def can_grant(self, cpus: CpuSet, count: int) -> bool:
        """Return whether just *cpus* are a valid grant for *count* CPUs."""
        if len(cpus) != count or not cpus:
            return False
        return cpus <= self.ordinary or (count == 1 and cpus <= self.isolated)


def pool_rule(spec: ContainerSpec, settings: StaticSettings) -> Rule | None:
    """Return why a container shares CPUs; None if it asks for exclusive ones."""
    if settings.reserves_for(spec.namespace):
        return Rule.RESERVED_NAMESPACE
    if spec.whole_cpus:
        return None
    if spec.qos is QosClass.GUARANTEED:
        return Rule.NOT_WHOLE_CPUS
    return Rule.NOT_GUARANTEED


def place(
    spec: ContainerSpec, free: FreeCpus, offers: Iterable[CpuSet] = ()
) -> StaticPlacement:
    """Place a container that has no grant.

    Args:
        spec: The container.
        free: What can be granted to it.
        offers: Former places to take as they are, best first, if they are legal.

    Raises:
        ExclusiveCpusShort: It asks for more CPUs than are free, and `on_failure` is
            `REFUSE`.
    """
    rule = pool_rule(spec, free.settings)
    if rule is not None:
        return StaticPlacement(rule)
    for offer in offers:
        if free.can_grant(offer, spec.whole_cpus):
            return StaticPlacement(Rule.OLD_PLACE, offer)
    try:
        return _allocate(spec, free)
    except PolicyError as refusal:
        if free.settings.on_failure is OnFailure.REFUSE:
            raise
        return StaticPlacement(Rule.FELL_BACK, detail=str(refusal))


def resize(spec: ContainerSpec, held: CpuSet, free: FreeCpus) -> StaticPlacement:
    """Place a container that has the CPUs *held* and asks for another number.

    It grows in place, unless it fits on fewer NUMA nodes elsewhere. A request that
    does not fit is always refused: on shared CPUs the container would lose its grant.

    Raises:
        ExclusiveCpusShort: Too few CPUs are free; *held* stays valid.
    """
    count = spec.whole_cpus
    if count <= len(held):
        pick = release_cpus(held, len(held) - count, free.machine)
        return StaticPlacement(Rule.SHRUNK_IN_PLACE, held - pick.cpus, pick.level)
    # An isolated CPU cannot be extended: the scheduler balances no load over several.
    if not held <= free.supply.ordinary:
        return replace(_allocate(spec, free, held), rule=Rule.MOVED)
    if len(free.ordinary) < count:
        raise _short(spec, free, held)
    grown = _pick(count - len(held), free.ordinary - held, free.machine, held)
    fresh = _pick(count, free.ordinary, free.machine)
    stay = free.machine.nodes_of(held | grown.cpus)
    if len(free.machine.nodes_of(fresh.cpus)) < len(stay):
        return StaticPlacement(Rule.MOVED, fresh.cpus, fresh.level)
    return StaticPlacement(Rule.GROWN_IN_PLACE, held | grown.cpus, grown.level)


def adopt(
    specs: Sequence[ContainerSpec], known: Mapping[str, Pin], free: FreeCpus
) -> dict[str, StaticPlacement]:
    """Place running containers; never refuses, as they run in any case.

    Containers on valid CPUs stay there. Next come those with a valid earlier grant,
    then the others, each group in the given order.

    Args:
        specs: The running containers, oldest first.
        known: Earlier grants by container id.
        free: The CPUs that can be granted.

    Returns:
        The placement of every container, by id.
    """
    shared = replace(free.settings, on_failure=OnFailure.SHARED)
    free = replace(free, settings=shared)
    exclusive = [spec for spec in specs if pool_rule(spec, free.settings) is None]
    placed: dict[str, StaticPlacement] = {}
    present = {spec.id: spec.present for spec in exclusive}
    # Without CPU pinning, a container's present CPUs say nothing about its grant.
    for claims in (present, known) if free.settings.pin_cpus else (known, present):
        for spec in exclusive:
            claim = claims.get(spec.id, NO_PIN).cpus
            if spec.id not in placed and free.can_grant(claim, spec.whole_cpus):
                placed[spec.id] = StaticPlacement(Rule.KEPT, claim)
                free = replace(free, taken=free.taken | claim)
    for spec in specs:
        if spec.id not in placed:
            placed[spec.id] = placement = place(spec, free)
            free = replace(free, taken=free.taken | placement.cpus)
    return placed


def _allocate(
    spec: ContainerSpec, free: FreeCpus, held: CpuSet = NO_CPUS
) -> StaticPlacement:
    count = spec.whole_cpus
    if count == 1 and free.isolated:
        pick = allocate_cpus(CpuRequest(count=1, free=free.isolated), free.machine)
        return StaticPlacement(Rule.ISOLATED_CPU, pick.cpus, pick.level)
    if len(free.ordinary) < count:
        raise _short(spec, free, held)
    pick = _pick(count, free.ordinary, free.machine)
    return StaticPlacement(Rule.WHOLE_CPUS, pick.cpus, pick.level)


def _pick(
    count: int, free: CpuSet, machine: Machine, held: CpuSet = NO_CPUS
) -> CpuPick:
    """Take CPUs of one kind of core if one kind has enough, strongest first."""
    for kind in machine.kinds:
        equal = machine.cpus_of_kind(kind)
        if held <= equal and len(free & equal) >= count:
            free &= equal
            break
    return allocate_cpus(CpuRequest(count=count, free=free, held=held), machine)


def _short(spec: ContainerSpec, free: FreeCpus, held: CpuSet) -> ExclusiveCpusShort:
    return ExclusiveCpusShort(
        title=spec.title or spec.id,
        wanted=spec.whole_cpus,
        free=free.ordinary - held,
        taken=free.taken & free.supply.ordinary,
        reserved=free.supply.reserved,
        isolated=free.isolated,
        held=held,
    )
