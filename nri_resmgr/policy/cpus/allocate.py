"""Allocate CPUs out of a set, and release CPUs out of a set."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nri_resmgr.policy.cpus.alike import Alike
from nri_resmgr.policy.cpus.costs import costs_of
from nri_resmgr.policy.cpus.errors import CpusExhausted
from nri_resmgr.policy.cpus.index import CpuIndex, index_of
from nri_resmgr.policy.cpus.levels import Level
from nri_resmgr.policy.cpus.places import deepest
from nri_resmgr.policy.cpus.problem import Problem, narrowed
from nri_resmgr.policy.cpus.request import (
    CpuPick,
    CpuRequest,
    Preferences,
    Reason,
    Rule,
)
from nri_resmgr.policy.cpus.search import cheapest
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet


def allocate_cpus(request: CpuRequest, machine: Machine) -> CpuPick:
    """Choose CPUs out of the free ones, so that they sit close together.

    As many as possible come from `near`, and as few as possible from `far`.
    Then the pick touches the fewest packages, dies, NUMA nodes, caches,
    clusters and cores that can hold the request, in this order; `Costs` has
    it in full. Of equal picks the one with the lower ids wins.

    Args:
        request: What is wanted; CPUs of `free` must be online.
        machine: The machine that the CPUs belong to.

    Raises:
        CpusExhausted: Fewer CPUs are free than wanted.
        ValueError: A free CPU is not online on this machine.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> pick = allocate_cpus(CpuRequest(2, CpuSet.parse("1-7")), parse_spec("4c2t"))
    >>> str(pick.cpus), pick.level.value, pick.reason.candidates
    ('1,5', 'core', 3)
    """
    if len(request.free) < request.count:
        raise CpusExhausted(wanted=request.count, free=request.free)
    if not request.free <= machine.online:
        msg = f"CPU {request.free - machine.online} is free and not online"
        raise ValueError(msg)
    index = index_of(machine)
    cpus = _choose(request, index)
    return _explained(cpus, request, index)


def release_cpus(
    held: CpuSet, count: int, machine: Machine, wish: Preferences | None = None
) -> CpuPick:
    """Choose CPUs to give back, so that those that stay sit close together.

    What stays is what `allocate_cpus` would take out of *held*; fragments go
    first. Asked for again beside what stays, the same CPUs come back.

    Args:
        held: The CPUs to choose from.
        count: How many to give back.
        machine: The machine that the CPUs belong to.
        wish: Preferences of the CPUs that stay.

    Returns:
        The CPUs to give back; the level and the reason are those of what stays.

    Raises:
        CpusExhausted: More CPUs are to be given back than are held.
    """
    if len(held) < count:
        raise CpusExhausted(wanted=count, free=held)
    wish = wish or Preferences()
    kept = msgspec.structs.asdict(wish)
    stay = allocate_cpus(CpuRequest(len(held) - count, held, **kept), machine)
    return CpuPick(held - stay.cpus, stay.level, stay.reason)


def _choose(request: CpuRequest, index: CpuIndex) -> CpuSet:
    """Empty the better tiers and choose inside the one that is not used up."""
    chosen = NO_CPUS
    for tier in _tiers(request):
        missing = request.count - len(chosen)
        if not missing:
            break
        if len(tier) > missing:
            held = (request.held | chosen).bits
            costs = costs_of(request.without_sets(), index)
            problem = Problem(missing, tier.bits, request.free.bits, held, costs, index)
            return chosen | _solved(problem)
        chosen |= tier
    return chosen


def _solved(problem: Problem) -> CpuSet:
    if problem.held or not problem.is_alike:
        problem = narrowed(problem)
    if not problem.is_alike:
        return cheapest(problem)
    search = Alike(problem)
    return search.beside() if problem.held else search.best(deepest(problem))


def _tiers(request: CpuRequest) -> Iterator[CpuSet]:
    """Cut the free CPUs into sets that are used up one after the other."""
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
        rule, candidates = Rule.EVERYTHING, 1
    elif level is Level.MACHINE:
        rule = Rule.SPILL
    elif candidates == 1:
        rule = Rule.ONLY_GROUP
    else:
        rule = Rule.ROOMIEST if request.spread else Rule.TIGHTEST
    near = len(cpus & request.near) if request.near else 0
    far = len(cpus & request.far) if request.far else 0
    return CpuPick(cpus, level, Reason(rule, candidates, near, far))


def _narrowest(cpus: CpuSet, request: CpuRequest, index: CpuIndex) -> tuple[Level, int]:
    """Return the narrowest level that holds *cpus*, and its groups with room."""
    wanted, free = request.count, request.free.bits
    if wanted <= 1:
        return Level.THREAD, len(request.free)
    first, bits = cpus.first, cpus.bits
    depth = len(index.home) - 1
    while bits & ~index.home[depth][first]:
        depth -= 1
    cut = index.partitions[depth]
    if wanted == index.largest[depth] == 2:  # noqa: PLR2004 - whole cores
        return cut.narrowest, index.pairs_in(free).bit_count()
    roomy = [mask for mask in cut.groups if (mask & free).bit_count() >= wanted]
    return cut.narrowest, len(roomy)
