"""What a container that runs must have been granted, told by where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.topology_aware.books import Grant
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.pins import visible
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.room import Room
from nri_resmgr.values import CpuSet


def recall(demand: Demand, room: Room, shared: CpuSet) -> Iterator[Grant]:
    """Guess the grant behind a container's present CPUs, the likeliest first.

    Args:
        demand: What it asks for; where it is, is in its spec.
        room: What is granted to others so far.
        shared: CPUs that containers without CPUs of their own run on.
    """
    present = demand.spec.present.cpus
    if demand.kind in (CpuKind.RESERVED, CpuKind.PRESERVED):
        yield _grant(demand, room.tree.root, CpuSet())
    elif demand.kind is CpuKind.SHARED:
        for pool in _pools_of_sharers(demand, room):
            yield _grant(demand, pool, CpuSet())
    elif demand.kind is CpuKind.OWN:
        cpus = present
        if demand.spec.preferences.hide_hyperthreads:
            cores = room.tree.machine.cores
            cpus = CpuSet.union(c.cpus for c in cores if not c.cpus.isdisjoint(present))
        for pool in _containing(cpus, demand, room):
            yield _grant(demand, pool, cpus)
    else:
        own = present - shared
        if len(own) > demand.count:
            wish = CpuRequest(demand.count, own)
            own = allocate_cpus(wish, room.tree.machine).cpus
        for pool in _containing(present, demand, room):
            yield _grant(demand, pool, own)


def shared_by_some(demands: Iterable[Demand]) -> CpuSet:
    """Return the CPUs on which containers run that have none of their own."""
    return CpuSet.union(
        one.spec.present.cpus
        for one in demands
        if one.kind in (CpuKind.SHARED, CpuKind.RESERVED)
    )


def _pools_of_sharers(demand: Demand, room: Room) -> list[Pool]:
    """Return the pools whose shared CPUs are just these, or else hold them."""
    present = demand.spec.present.cpus
    pools = _containing(present, demand, room)
    like = _grant(demand, room.tree.root, CpuSet())
    exact = [
        pool
        for pool in pools
        if visible(room.books.free_sharable(pool), like, room.tree) == present
    ]
    return exact or pools


def _containing(cpus: CpuSet, demand: Demand, room: Room) -> list[Pool]:
    """Return the pools that hold *cpus*, those with the container's memory first.

    CPUs come and go with the neighbours, memory nodes hardly ever do.
    """
    if not cpus:
        return []
    pools = [pool for pool in room.tree.pools if cpus <= pool.sharable | pool.isolated]
    mems = demand.spec.present.mems
    return sorted(pools, key=lambda pool: (pool.nodes != mems, -pool.depth, pool.id))


def _grant(demand: Demand, pool: Pool, cpus: CpuSet) -> Grant:
    return Grant(
        container=demand.spec.id,
        kind=demand.kind,
        pool=pool.id,
        cpus=cpus,
        fraction=demand.fraction,
        hidden=demand.spec.preferences.hide_hyperthreads,
    )
