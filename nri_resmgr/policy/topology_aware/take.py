"""Take CPUs out of a pool, so that nobody who shares below it loses the last one."""

from __future__ import annotations

from typing import Final

from nri_resmgr.policy.cpus import (
    CpuRequest,
    CpusExhausted,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import PoolShort
from nri_resmgr.policy.topology_aware.hint_scores import cpus_near_all
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import Room
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, CpuSet, NodeSet

_CPU: Final = 1000  # thousandths
_OWN: Final = CpuKind.OWN


def take(
    demand: Demand, pool: Pool, room: Room, held: CpuSet = NO_CPUS
) -> tuple[Grant, str]:
    """Grant what is demanded from one pool.

    Args:
        demand: What is asked for.
        pool: Where to take it from.
        room: The node without the container that asks.
        held: Whole CPUs that it has now and wants to keep, as far as it can.

    Returns:
        A grant, and the level of the machine that all its own CPUs are within.

    Raises:
        PoolShort: The pool cannot grant it.
    """
    cpus, level = NO_CPUS, ""
    if demand.count:
        cpus, level = _whole_cpus(demand, pool, room, held)
    _check(demand, cpus, pool, room)
    return grant_of(demand, pool, cpus), level


def retake(demand: Demand, cpus: CpuSet, pool: Pool, room: Room) -> Grant:
    """Grant just *cpus* again, which some earlier grant of the same kind had.

    Raises:
        PoolShort: They are not what is demanded, or not free any more.
    """
    isolated = demand.isolated and cpus <= room.books.free_isolated(pool)
    if len(cpus) != demand.count:
        raise PoolShort(pool.name, f"{demand.count} CPUs are wanted, not {len(cpus)}")
    if demand.count and not isolated:
        _check_ordinary(demand, cpus, pool, room)
    _check(demand, cpus, pool, room)
    return grant_of(demand, pool, cpus)


def check_memory(demand: Demand, zone: NodeSet, pool: Pool) -> None:
    """See that the memory nodes of a container are inside of its strict hints.

    Raises:
        PoolShort: They are not.
    """
    if not demand.spec.preferences.strict_hints:
        return
    for hint in demand.spec.hints:
        if hint.nodes and not zone <= hint.nodes:
            why = f"memory on nodes {zone} is not near {hint.provider}"
            raise PoolShort(pool.name, why)


def _check_ordinary(demand: Demand, cpus: CpuSet, pool: Pool, room: Room) -> None:
    books = room.books
    free = cpus <= books.free_sharable(pool) and not demand.require_isolated
    enough = books.spare(pool) >= _CPU * demand.count + demand.fraction
    if not free or not enough or _starves(cpus, pool, room):
        raise PoolShort(pool.name, f"CPU {cpus} is not free")


def _check(demand: Demand, cpus: CpuSet, pool: Pool, room: Room) -> None:
    if demand.kind is not _OWN:
        _check_shared(demand, cpus, pool, room)
    if demand.spec.preferences.strict_hints:
        # What a pool shares can be all of it, sooner or later.
        mine = cpus if demand.kind is _OWN else cpus | pool.sharable
        _check_hints(mine, demand, pool)


def _whole_cpus(
    demand: Demand, pool: Pool, room: Room, held: CpuSet
) -> tuple[CpuSet, str]:
    isolated = room.books.free_isolated(pool)
    if demand.isolated and len(isolated) >= demand.count:
        return _pick(demand, isolated, room, held)
    if demand.require_isolated:
        why = f"{len(isolated)} isolated CPUs are free"
        raise PoolShort(pool.name, why)
    spare = room.books.spare(pool)
    if spare < _CPU * demand.count + demand.fraction:
        raise PoolShort(pool.name, f"{max(spare, 0)}m of shared CPUs are free")
    free = room.books.free_sharable(pool)
    cpus, level = _pick(demand, free, room, held)
    if not _starves(cpus, pool, room):
        return cpus, level
    allowed = _allowed(free, pool, room)
    if len(allowed) < demand.count:
        why = f"{len(allowed)} CPUs can be taken from those who share them"
        raise PoolShort(pool.name, why)
    return _pick(demand, allowed, room, held)


def _pick(demand: Demand, free: CpuSet, room: Room, held: CpuSet) -> tuple[CpuSet, str]:
    machine, hints = room.tree.machine, demand.spec.hints
    if hints and demand.spec.preferences.strict_hints:
        free &= cpus_near_all(hints, machine)
    keep = held & free
    if len(keep) > demand.count:
        given = release_cpus(keep, len(keep) - demand.count, machine)
        return keep - given.cpus, given.level
    even = demand.spec.preferences.pick_by_hints and not keep
    if even and (cpus := _spread_over(hints, demand, free, room)):
        return cpus, "hints"
    wish = CpuRequest(
        count=demand.count - len(keep),
        free=free - keep,
        held=keep,
        near=CpuSet.union(hint.cpus for hint in hints) & free,
        priority=demand.priority,
    )
    pick = allocate_cpus(wish, machine)
    return keep | pick.cpus, pick.level


def _spread_over(
    hints: tuple[Hint, ...], demand: Demand, free: CpuSet, room: Room
) -> CpuSet:
    """Take evenly from the CPUs of each hint, and the rest anywhere.

    Returns:
        No CPUs where that cannot be done.
    """
    devices = [hint for hint in hints if hint.is_pod_resource]
    if not 0 < len(devices) <= demand.count:
        return NO_CPUS
    machine, each = room.tree.machine, demand.count // len(devices)
    chosen = NO_CPUS
    try:
        for hint in devices:
            wish = CpuRequest(each, (hint.cpus & free) - chosen)
            chosen |= allocate_cpus(wish, machine).cpus
        rest = CpuRequest(demand.count - len(chosen), free - chosen, held=chosen)
        return chosen | allocate_cpus(rest, machine).cpus
    except CpusExhausted:
        return NO_CPUS


def _starves(cpus: CpuSet, pool: Pool, room: Room) -> bool:
    """Tell whether some pool below would have less than it has granted."""
    pools, books = room.tree.pools, room.books
    return any(
        _CPU * len(cpus & pools[one].sharable) > books.slack(pools[one])
        for one in pool.subtree
        if not cpus.isdisjoint(pools[one].sharable)
    )


def _allowed(free: CpuSet, pool: Pool, room: Room) -> CpuSet:
    """Leave enough CPUs out of *free* for every pool below to keep its promises.

    Children come before their parents, so that what is left is the most there is:
    the limits of a tree of sets are a matroid.
    """
    machine = room.tree.machine
    for one in pool.subtree:
        below = room.tree.pools[one]
        mine, limit = free & below.sharable, max(room.books.slack(below) // _CPU, 0)
        if len(mine) > limit:
            free -= mine - allocate_cpus(CpuRequest(limit, mine), machine).cpus
    return free


def _check_shared(demand: Demand, cpus: CpuSet, pool: Pool, room: Room) -> None:
    """See that the pool keeps CPUs to share, and enough of them for the fraction.

    Who asks for nothing may crowd in wherever somebody else runs.
    """
    books, sharable, own = room.books, pool.sharable.bits, cpus.bits
    shared = sharable & ~(books.taken.bits | own)
    spare = books.spares[pool.id] - _CPU * (own & sharable).bit_count()
    if not shared or (demand.fraction and spare < demand.fraction):
        raise PoolShort(pool.name, f"{max(spare, 0)}m of shared CPUs are free")


def _check_hints(cpus: CpuSet, demand: Demand, pool: Pool) -> None:
    for hint in demand.spec.hints:
        if hint.cpus and not cpus <= hint.cpus:
            why = f"CPU {cpus - hint.cpus} is not near {hint.provider}"
            raise PoolShort(pool.name, why)
