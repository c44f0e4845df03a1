"""Placement of containers: on exclusive CPUs or in a shared pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.advice import with_cpus
from nri_resmgr.policy.cpus import (
    CpuPick,
    CpuPriority,
    CpuRequest,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.errors import ExclusiveCpusShort, OnFailure
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.reported import Reported
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import StaticState
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, PolicyError


class StaticPlacement(msgspec.Struct, frozen=True):
    """The decision on a container: exclusive CPUs, or none and the pool's rule."""

    rule: Rule
    cpus: CpuSet = NO_CPUS
    detail: str = ""


class FreeCpus(msgspec.Struct, frozen=True):
    """The CPUs that can be granted to a container, with those *taken* by others."""

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
        """Isolated CPUs that are not granted."""
        return self.supply.isolated - self.taken

    def can_grant(self, cpus: CpuSet, spec: ContainerSpec) -> bool:
        """Return whether just *cpus* are a valid grant for a container."""
        if len(cpus) != self.settings.count_for(spec) or not cpus:
            return False
        if cpus <= self.ordinary:
            return True
        if cpus <= self.isolated and self.settings.tries_isolated(spec):
            return True
        return self.settings.borrow_isolated and cpus <= self.ordinary | self.isolated


def place(
    spec: ContainerSpec, free: FreeCpus, offers: Iterable[CpuSet] = ()
) -> StaticPlacement:
    """Place a container that has no grant, on the first legal one of *offers* if any.

    Raises:
        ExclusiveCpusShort: It asks for more CPUs than are free, and `on_failure` is
            `REFUSE`.
    """
    rule = free.settings.pool_rule(spec)
    if rule is not None:
        return StaticPlacement(rule)
    for offer in offers:
        if free.can_grant(offer, spec):
            return StaticPlacement(Rule.OLD_PLACE, offer)
    try:
        return _allocate(spec, free)
    except PolicyError as refusal:
        if free.settings.on_failure is OnFailure.REFUSE:
            raise
        return StaticPlacement(Rule.FELL_BACK, detail=str(refusal))


def place_pod(
    specs: Sequence[ContainerSpec], title: str, free: FreeCpus
) -> dict[str, CpuSet]:
    """Choose exclusive CPUs for all containers of a pod, near each other.

    Those that get isolated CPUs get them one by one, as always.

    Args:
        specs: Containers that ask for exclusive CPUs, each of another name.
        title: ``namespace/pod``.
        free: Are left to them.

    Returns:
        CPUs by the names of the containers.

    Raises:
        ExclusiveCpusShort: They ask for more CPUs than are free.
    """
    count_for, found = free.settings.count_for, dict[str, CpuSet]()
    others: list[ContainerSpec] = []
    for spec in sorted(specs, key=count_for, reverse=True):
        if not (
            free.settings.tries_isolated(spec) and len(free.isolated) >= count_for(spec)
        ):
            others.append(spec)
            continue
        cpus = found[spec.name] = _allocate(spec, free).cpus
        free = replace(free, taken=free.taken | cpus)
    if not others:
        return found
    total = MilliCpus(ONE_CPU * sum(map(count_for, others)))
    whole = replace(others[0], title=title, request=total, limit=None)
    left = _allocate(whole, free).cpus
    for spec in others:
        cpus = found[spec.name] = _pick(count_for(spec), left, free.machine).cpus
        left -= cpus
    return found


def place_again(spec: ContainerSpec, free: FreeCpus) -> StaticPlacement | None:
    """Grant CPUs to a running container that fell back; None if too few are free."""
    if free.settings.pool_rule(spec) is not None:
        return None
    try:
        return replace(_allocate(spec, free), rule=Rule.NOW_FITS)
    except ExclusiveCpusShort:
        return None


def resize(spec: ContainerSpec, held: CpuSet, free: FreeCpus) -> StaticPlacement:
    """Place a container that has the CPUs *held* and asks for another number.

    It grows in place, unless it fits on fewer NUMA nodes elsewhere. A request that
    does not fit is always refused: on shared CPUs the container would lose its grant.

    Raises:
        ExclusiveCpusShort: Too few CPUs are free; *held* stays valid.
    """
    count = free.settings.count_for(spec)
    if count <= len(held):
        pick = release_cpus(held, len(held) - count, free.machine)
        return StaticPlacement(Rule.SHRUNK_IN_PLACE, held - pick.cpus, pick.level)
    # Isolated CPUs are not extended by ordinary ones: the scheduler balances no load
    # over them.
    if not held <= free.supply.ordinary or len(free.ordinary) < count:
        return replace(_allocate(spec, free, held), rule=Rule.MOVED)
    grown = _pick(count - len(held), free.ordinary - held, free.machine, held)
    fresh = _pick(count, free.ordinary, free.machine)
    stay = free.machine.nodes_of(held | grown.cpus)
    if len(free.machine.nodes_of(fresh.cpus)) < len(stay):
        return StaticPlacement(Rule.MOVED, fresh.cpus, fresh.level)
    return StaticPlacement(Rule.GROWN_IN_PLACE, held | grown.cpus, grown.level)


def adopt(
    specs: Sequence[ContainerSpec], old: StaticState, free: FreeCpus
) -> dict[str, StaticPlacement]:
    """Place running containers, oldest first; never refuses, as they run in any case.

    Containers on valid CPUs stay there. Next come those with a valid grant in an *old*
    state, unless they have moved since, then the others, each group in the given order.
    """
    shared = replace(free.settings, on_failure=OnFailure.SHARED)
    free = replace(free, settings=shared)
    exclusive = [spec for spec in specs if free.settings.pool_rule(spec) is None]
    placed: dict[str, StaticPlacement] = {}
    present = {spec.id: spec.present for spec in exclusive}
    recent, outdated = _grants_by_age(specs, old)
    # Without CPU pinning, a container's present CPUs say nothing about its grant.
    orders = [present, recent] if free.settings.pin_cpus else [recent, present]
    if free.settings.mixes:
        # Before what is known: a container with shared CPUs besides can have moved its
        # exclusive ones, and have the same CPUs.
        alone = _not_shared(specs, free.supply)
        orders.insert(1, alone)
        # It can be the only one on the shared ones: then any of these are its own.
        orders.append(_parts_of(alone, exclusive, free))
    orders.append(outdated)
    for claims in orders:
        for spec in exclusive:
            claim = claims.get(spec.id, NO_PIN).cpus
            if spec.id not in placed and free.can_grant(claim, spec):
                placed[spec.id] = StaticPlacement(Rule.KEPT, claim)
                free = replace(free, taken=free.taken | claim)
    for spec in specs:
        if spec.id not in placed:
            placed[spec.id] = placement = place(spec, free)
            free = replace(free, taken=free.taken | placement.cpus)
    return placed


def _grants_by_age(
    specs: Sequence[ContainerSpec], old: StaticState
) -> tuple[dict[str, Pin], dict[str, Pin]]:
    """Return the grants of containers that run as last sent, and of those that moved.

    Containers that had none are left out.
    """
    recent: dict[str, Pin] = {}
    outdated: dict[str, Pin] = {}
    reported = Reported.of(specs)
    for spec in specs:
        if grant := old.grants.get(spec.id):
            entry = old.ledger.entries[spec.id]
            is_recent = reported.is_known(spec.present, entry)
            (recent if is_recent else outdated)[spec.id] = grant
    return recent, outdated


def _not_shared(specs: Sequence[ContainerSpec], supply: Supply) -> dict[str, Pin]:
    """Return the CPUs on which each container runs and no other, by id.

    Without those that are never granted: one alone can have overflowed to them.
    """
    times = Counter(cpu for spec in specs for cpu in spec.present.cpus)
    alone = CpuSet.from_iterable(cpu for cpu, count in times.items() if count == 1)
    alone &= supply.ordinary | supply.isolated
    return {spec.id: Pin(spec.present.cpus & alone) for spec in specs}


def _parts_of(
    alone: Mapping[str, Pin], specs: Sequence[ContainerSpec], free: FreeCpus
) -> dict[str, Pin]:
    """Return exclusive CPUs of containers, part of those that each has *alone*, by id.

    Isolated CPUs are not shared, so that other ones are exclusive only without these.
    """
    parts: dict[str, Pin] = {}
    for spec in specs:
        mine, count = alone[spec.id].cpus, free.settings.count_for(spec)
        isolated, ordinary = mine & free.supply.isolated, mine & free.supply.ordinary
        if len(isolated) == count:
            parts[spec.id] = Pin(isolated)
        elif not isolated and len(ordinary) >= count:
            parts[spec.id] = Pin(_pick(count, ordinary, free.machine).cpus)
    return parts


def _allocate(
    spec: ContainerSpec, free: FreeCpus, held: CpuSet = NO_CPUS
) -> StaticPlacement:
    settings, ordinary, isolated = free.settings, free.ordinary, free.isolated
    count = settings.count_for(spec)
    if settings.tries_isolated(spec) and len(isolated) >= count:
        pick = _pick(count, isolated, free.machine)
        return StaticPlacement(Rule.ISOLATED_CPU, pick.cpus, pick.level)
    if len(ordinary) >= count:
        pick = _pick(count, ordinary, free.machine)
        return StaticPlacement(Rule.WHOLE_CPUS, pick.cpus, pick.level)
    if settings.borrow_isolated and len(ordinary | isolated) >= count:
        more = _pick(count - len(ordinary), isolated, free.machine, ordinary)
        return StaticPlacement(Rule.ISOLATED_CPU, ordinary | more.cpus, more.level)
    raise _short(spec, free, held)


def _pick(
    count: int, free: CpuSet, machine: Machine, held: CpuSet = NO_CPUS
) -> CpuPick:
    # Exclusive CPUs are for work that waits for its CPU: the fast ones are for it.
    request = CpuRequest(count=count, free=free, held=held, priority=CpuPriority.HIGH)
    return allocate_cpus(request, machine)


def _short(spec: ContainerSpec, free: FreeCpus, held: CpuSet) -> ExclusiveCpusShort:
    settings = free.settings
    count = settings.count_for(spec)
    # Where only containers with one CPU get isolated CPUs, this is worth a hint.
    only_one = not (
        held or settings.tries_isolated(spec) or settings.borrow_isolated
    ) and settings.tries_isolated(with_cpus(1)(spec))
    return ExclusiveCpusShort(
        title=spec.title or spec.id,
        wanted=count,
        free=free.ordinary - held,
        taken=free.taken & free.supply.ordinary,
        reserved=free.supply.reserved,
        isolated=free.isolated if only_one else NO_CPUS,
        held=held,
    )
