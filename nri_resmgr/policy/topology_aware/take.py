"""Grants of CPUs from one pool that leave pools below it what they have granted."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nri_resmgr.policy.cpus import (
    CpuPriority,
    CpuRequest,
    CpusExhausted,
    PrioritySets,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.topology_aware.criteria import cpus_of_priority
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import PoolShort, shared_text
from nri_resmgr.policy.topology_aware.hint_scores import cpus_near_all
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import CoreKind
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, NodeSet
from nri_resmgr.values.counts import count_are, count_text

_EXCLUSIVE: Final = CpuKind.EXCLUSIVE


def take(
    demand: Demand, pool: Pool, view: NodeView, held: CpuSet = NO_CPUS
) -> tuple[Grant, str]:
    """Grant a demand from one pool; keep the exclusive CPUs *held* as far as possible.

    Returns:
        A grant, and the smallest level of the machine with all its exclusive CPUs.

    Raises:
        PoolShort: The pool cannot grant it.
    """
    cpus, level = NO_CPUS, ""
    if demand.count:
        cpus, level = _whole_cpus(demand, pool, view, held)
    _check(demand, cpus, pool, view)
    return grant_of(demand, pool, cpus), level


def take_again(demand: Demand, cpus: CpuSet, pool: Pool, view: NodeView) -> Grant:
    """Grant exactly *cpus* again, those of a former grant of the same kind.

    Raises:
        PoolShort: They are not what is asked for, or no longer free.
    """
    isolated = demand.isolated and cpus <= view.pool_ledger.free_isolated(pool)
    if len(cpus) != demand.count:
        raise PoolShort(
            pool.name, f"{count_are(demand.count, 'CPU')} asked for, not {len(cpus)}"
        )
    if demand.count and not isolated:
        _check_ordinary(demand, cpus, pool, view)
    _check(demand, cpus, pool, view)
    return grant_of(demand, pool, cpus)


def most_exclusive(cpus: CpuSet, demand: Demand, pool: Pool, view: NodeView) -> CpuSet:
    """Return the most CPUs of *cpus* that could be exclusive, one claim or several."""
    free = view.pool_ledger.free_sharable(pool) & cpus
    return _allowed(free, demand, pool, view)


def check_memory(demand: Demand, zone: NodeSet, pool: Pool) -> None:
    """Check that the memory nodes of a container are inside of its strict hints.

    Raises:
        PoolShort: They are not.
    """
    if not demand.spec.preferences.strict_hints:
        return
    for hint in demand.spec.hints:
        if hint.nodes and not zone <= hint.nodes:
            why = f"memory on nodes {zone} is not near {hint.provider}"
            raise PoolShort(pool.name, why)


def _check_ordinary(demand: Demand, cpus: CpuSet, pool: Pool, view: NodeView) -> None:
    ledger = view.pool_ledger
    free = cpus <= ledger.free_sharable(pool) and not demand.require_isolated
    enough = ledger.free_capacity(pool) >= ONE_CPU * demand.count + demand.fraction
    if not free or not enough or _overcommits(cpus, pool, view):
        raise PoolShort(pool.name, f"CPU {cpus} is not free")


def _check(demand: Demand, cpus: CpuSet, pool: Pool, view: NodeView) -> None:
    if demand.kind is not _EXCLUSIVE:
        _check_shared(demand, cpus, pool, view)
    if demand.spec.preferences.strict_hints:
        # All sharable CPUs of the pool, since the shared set changes over time.
        reached = cpus if demand.kind is _EXCLUSIVE else cpus | pool.sharable
        _check_hints(reached, demand, pool)


def _whole_cpus(
    demand: Demand, pool: Pool, view: NodeView, held: CpuSet
) -> tuple[CpuSet, str]:
    isolated = view.pool_ledger.free_isolated(pool)
    if demand.isolated and len(isolated) >= demand.count:
        return _pick(demand, isolated, view, held)
    if demand.require_isolated:
        raise PoolShort(pool.name, f"{count_are(len(isolated), 'isolated CPU')} free")
    free_capacity = view.pool_ledger.free_capacity(pool)
    if free_capacity < ONE_CPU * demand.count + demand.fraction:
        raise PoolShort(pool.name, shared_text(max(free_capacity, 0)))
    free = view.pool_ledger.free_sharable(pool)
    cpus, level = _pick(demand, free, view, held)
    if not _overcommits(cpus, pool, view):
        return cpus, level
    allowed = _allowed(free, demand, pool, view)
    if len(allowed) < demand.count:
        of = count_text(len(free), "free CPU")
        why = f"only {len(allowed)} of {of} can be exclusive"
        why += ": the others must stay for containers that share them"
        raise PoolShort(pool.name, why)
    return _pick(demand, allowed, view, held)


def _pick(
    demand: Demand, free: CpuSet, view: NodeView, held: CpuSet
) -> tuple[CpuSet, str]:
    machine, hints = view.tree.machine, demand.spec.hints
    if hints and demand.spec.preferences.strict_hints:
        free &= cpus_near_all(hints, machine)
    keep = held & free
    if len(keep) > demand.count:
        given = release_cpus(keep, len(keep) - demand.count, machine)
        return keep - given.cpus, given.level
    near = CpuSet.union(hint.cpus for hint in hints) & free
    if not near and len(asked := _asked(demand, view) & free) >= demand.count:
        near = asked  # the allocator itself would rather stay in one node
    even = demand.spec.preferences.pick_by_hints and not keep
    if even and (cpus := _spread_over(hints, demand, free, view)):
        return cpus, "hints"
    priority, classes = demand.priority, None
    if demand.spec.preferences.cpu_priority is None:
        priority, classes = _usual_classes(view.tree, priority)
    request = CpuRequest(
        count=demand.count - len(keep),
        free=free - keep,
        held=keep,
        near=near,
        priority=priority,
        classes=classes,
    )
    pick = allocate_cpus(request, machine)
    return keep | pick.cpus, pick.level


@lru_cache(maxsize=16)
def _usual_classes(
    tree: PoolTree, priority: CpuPriority
) -> tuple[CpuPriority, PrioritySets | None]:
    """Return the priority of a container without an annotation, and its classes.

    If the settings have none, efficient cores come last where there are others:
    exclusive CPUs are for work that waits for its CPU.
    """
    machine = tree.machine
    if priority is not CpuPriority.ANY or len(machine.kinds) == 1:
        return priority, None
    efficient = machine.online - machine.cpus_of_kind(CoreKind.PERFORMANCE)
    return CpuPriority.NORMAL, PrioritySets(low=efficient)


def _asked(demand: Demand, view: NodeView) -> CpuSet:
    """Return the CPUs of the priority that a container asks for, if it does."""
    if not demand.asks_priority:
        return NO_CPUS
    return cpus_of_priority(view.tree, demand.priority)


def _spread_over(
    hints: tuple[Hint, ...], demand: Demand, free: CpuSet, view: NodeView
) -> CpuSet:
    """Choose equally many CPUs near each device, and the rest anywhere.

    No CPUs where some device has too few.
    """
    devices = [hint for hint in hints if hint.is_pod_resource]
    if not 0 < len(devices) <= demand.count:
        return NO_CPUS
    machine, each = view.tree.machine, demand.count // len(devices)
    chosen = NO_CPUS
    try:
        for hint in devices:
            request = CpuRequest(each, (hint.cpus & free) - chosen)
            chosen |= allocate_cpus(request, machine).cpus
        rest = CpuRequest(demand.count - len(chosen), free - chosen, held=chosen)
        return chosen | allocate_cpus(rest, machine).cpus
    except CpusExhausted:
        return NO_CPUS


def _overcommits(cpus: CpuSet, pool: Pool, view: NodeView) -> bool:
    """Return whether a pool below would have fewer CPUs than it has granted."""
    pools, ledger = view.tree.pools, view.pool_ledger
    return any(
        ONE_CPU * len(cpus & pools[one].sharable) > ledger.headroom(pools[one])
        for one in pool.subtree
        if not cpus.isdisjoint(pools[one].sharable)
    )


def _allowed(free: CpuSet, demand: Demand, pool: Pool, view: NodeView) -> CpuSet:
    """Return the most CPUs of *free* that leave every pool below what it has granted.

    CPUs of the priority that the container asks for are left out last. Children are
    handled before their parents. This greedy choice is optimal, since upper limits on a
    tree of nested sets form a matroid.
    """
    machine = view.tree.machine
    for one in pool.subtree:
        below = view.tree.pools[one]
        mine = free & below.sharable
        limit = max(view.pool_ledger.headroom(below) // ONE_CPU, 0)
        if len(mine) > limit:
            request = CpuRequest(limit, mine, near=_asked(demand, view) & mine)
            free -= mine - allocate_cpus(request, machine).cpus
    return free


def _check_shared(demand: Demand, cpus: CpuSet, pool: Pool, view: NodeView) -> None:
    """Check that the pool keeps shared CPUs, and enough for the fraction.

    A container without a request only needs one shared CPU, however loaded it is.
    """
    ledger, sharable, exclusive = view.pool_ledger, pool.sharable.bits, cpus.bits
    shared = sharable & ~(ledger.taken.bits | exclusive)
    free_capacity = (
        ledger.free_capacities[pool.id] - ONE_CPU * (exclusive & sharable).bit_count()
    )
    if not shared or (demand.fraction and free_capacity < demand.fraction):
        raise PoolShort(pool.name, shared_text(max(free_capacity, 0)))


def _check_hints(cpus: CpuSet, demand: Demand, pool: Pool) -> None:
    for hint in demand.spec.hints:
        if hint.cpus and not cpus <= hint.cpus:
            why = f"CPU {cpus - hint.cpus} is not near {hint.provider}"
            raise PoolShort(pool.name, why)
