"""Allocation of CPUs out of a set, and release of CPUs out of a set."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nri_resmgr.policy.cpus.costs import costs_of
from nri_resmgr.policy.cpus.index import CpuIndex, index_of
from nri_resmgr.policy.cpus.levels import TopologyLevel
from nri_resmgr.policy.cpus.problem import PickProblem, deepest, reduced
from nri_resmgr.policy.cpus.request import (
    CpuPick,
    CpuPreferences,
    CpuRequest,
    CpusExhausted,
    PickReason,
    PickRule,
)
from nri_resmgr.policy.cpus.search import cheapest_pick
from nri_resmgr.policy.cpus.uniform import UniformSearch
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet


def allocate_cpus(request: CpuRequest, machine: Machine) -> CpuPick:
    """Choose CPUs out of the free ones, so that they sit close together.

    As many as possible come from `near`, and as few as possible from `far`.
    Then the pick touches the fewest packages, dies, NUMA nodes, caches,
    clusters and cores that can hold the request, in this order; see `PickCosts`
    for all criteria. Of equal picks the one with the lower ids wins.

    Raises:
        CpusExhausted: Fewer CPUs are free than requested.
        ValueError: A free CPU is not online on this machine.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> pick = allocate_cpus(CpuRequest(2, CpuSet.parse("1-7")), parse_spec("4c2t"))
    >>> str(pick.cpus), pick.level.value, pick.reason.candidates
    ('1,5', 'core', 3)
    """
    if len(request.free) < request.count:
        raise CpusExhausted(wanted=request.count, free=request.free)
    if not request.free <= machine.online:
        raise ValueError(f"CPU {request.free - machine.online} is free and not online")
    index = index_of(machine)
    cpus = _choose(request, index)
    return _explained(cpus, request, index)


def release_cpus(
    held: CpuSet,
    count: int,
    machine: Machine,
    preferences: CpuPreferences | None = None,
) -> CpuPick:
    """Choose CPUs to give back, so that those that stay sit close together.

    The CPUs that stay are those that `allocate_cpus` would take out of *held* with the
    same preferences. A later request for as many CPUs beside them returns the released
    ones.

    Returns:
        The CPUs to give back; the level and the reason are those of what stays.

    Raises:
        CpusExhausted: More CPUs are to be given back than are held.
    """
    if len(held) < count:
        raise CpusExhausted(wanted=count, free=held)
    preferences = preferences or CpuPreferences()
    kept = msgspec.structs.asdict(preferences)
    stay = allocate_cpus(CpuRequest(len(held) - count, held, **kept), machine)
    return CpuPick(held - stay.cpus, stay.level, stay.reason)


def _choose(request: CpuRequest, index: CpuIndex) -> CpuSet:
    """Take all CPUs of the better tiers, and choose inside of the first larger one."""
    chosen = NO_CPUS
    for tier in _tiers(request):
        missing = request.count - len(chosen)
        if not missing:
            break
        if len(tier) > missing:
            held = (request.held | chosen).bits
            costs = costs_of(request.without_sets(), index)
            problem = PickProblem(
                missing, tier.bits, request.free.bits, held, costs, index
            )
            return chosen | _solved(problem)
        chosen |= tier
    return chosen


def _solved(problem: PickProblem) -> CpuSet:
    if problem.held or not problem.is_uniform:
        problem = reduced(problem)
    if not problem.is_uniform:
        return cheapest_pick(problem)
    search = UniformSearch(problem)
    return search.beside() if problem.held else search.best(deepest(problem))


def _tiers(request: CpuRequest) -> Iterator[CpuSet]:
    """Yield the free CPUs in tiers, the best first."""
    free, near, far = request.free, request.near, request.far
    if near:
        yield (free & near) - far
        yield free & near & far
    if near or far:
        yield free - near - far
        yield (free & far) - near
    else:
        yield free


def _explained(cpus: CpuSet, request: CpuRequest, index: CpuIndex) -> CpuPick:
    level, candidates = _narrowest(cpus, request, index)
    if request.count in {0, len(request.free)}:
        rule, candidates = PickRule.EVERYTHING, 1
    elif level is TopologyLevel.MACHINE:
        rule = PickRule.SPILL
    elif candidates == 1:
        rule = PickRule.ONLY_GROUP
    else:
        rule = PickRule.ROOMIEST if request.spread else PickRule.TIGHTEST
    near = len(cpus & request.near) if request.near else 0
    far = len(cpus & request.far) if request.far else 0
    return CpuPick(cpus, level, PickReason(rule, candidates, near, far))


def _narrowest(
    cpus: CpuSet, request: CpuRequest, index: CpuIndex
) -> tuple[TopologyLevel, int]:
    """Return the narrowest level that holds *cpus*, and its groups with room."""
    wanted, free = request.count, request.free.bits
    if wanted <= 1:
        return TopologyLevel.THREAD, len(request.free)
    first, bits = cpus.first, cpus.bits
    depth = len(index.home) - 1
    while bits & ~index.home[depth][first]:
        depth -= 1
    cut = index.partitions[depth]
    if wanted == index.largest[depth] == 2:  # noqa: PLR2004 - whole cores
        return cut.narrowest, index.whole_pairs(free).bit_count()
    roomy = [mask for mask in cut.groups if (mask & free).bit_count() >= wanted]
    return cut.narrowest, len(roomy)
