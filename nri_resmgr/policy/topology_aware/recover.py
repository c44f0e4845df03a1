"""What a container that runs must have been granted, told by where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.node_view import Room
from nri_resmgr.policy.topology_aware.pins import visible
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.values import CpuSet


class Occupied(msgspec.Struct, frozen=True):
    """Where containers run, as the runtime tells.

    Attributes:
        by_some: CPUs that a container runs on.
        shared: CPUs that no container can have to itself.
    """

    by_some: CpuSet
    shared: CpuSet


def recall(demand: Demand, room: Room, occupied: Occupied) -> Iterator[Grant]:
    """Guess the grant behind a container's present CPUs, the likeliest first.

    Args:
        demand: What it asks for; where it is, is in its spec.
        room: What is granted to others so far.
        occupied: Where all containers run, this one too.
    """
    present = demand.spec.present.cpus
    if demand.kind in (CpuKind.RESERVED, CpuKind.PRESERVED):
        yield grant_of(demand, room.tree.root, CpuSet())
    elif pools := _containing(present, demand, room):
        own = CpuSet()
        if demand.kind is not CpuKind.SHARED:
            own = _own_cpus(demand, room, occupied)
        # CPUs on which just one container runs are its own, as far as we know.
        others = occupied.by_some - occupied.shared - present
        for pool in _likeliest(pools, own, others, demand, room):
            yield grant_of(demand, pool, own)


def occupied_by(demands: Iterable[Demand]) -> Occupied:
    """Tell where containers run, and which of these CPUs they must be sharing."""
    by_some = shared = CpuSet()
    for one in demands:
        if one.kind is CpuKind.PRESERVED:
            continue  # it may be on anybody's
        present = one.spec.present.cpus
        shared |= present & by_some
        by_some |= present
        if one.kind in (CpuKind.SHARED, CpuKind.RESERVED):
            shared |= present
    return Occupied(by_some, shared)


def _own_cpus(demand: Demand, room: Room, occupied: Occupied) -> CpuSet:
    """Tell which of its CPUs a container has to itself, some unseen ones maybe."""
    machine, present = room.tree.machine, demand.spec.present.cpus
    own = present
    if demand.kind is CpuKind.MIXED:
        isolated = present & room.tree.root.isolated
        own = isolated or present - occupied.shared  # nobody shares isolated ones
        if len(own) > demand.count:
            return allocate_cpus(CpuRequest(demand.count, own), machine).cpus
    if demand.spec.preferences.hide_hyperthreads and len(own) < demand.count:
        cores = CpuSet.union(machine.core_of(cpu).cpus for cpu in own)
        unseen = cores & _grantable(room) - occupied.by_some
        more = min(demand.count - len(own), len(unseen))
        own |= allocate_cpus(CpuRequest(more, unseen, held=own), machine).cpus
    return own


def _likeliest(
    pools: list[Pool], own: CpuSet, others: CpuSet, demand: Demand, room: Room
) -> list[Pool]:
    """Keep the pools whose shared CPUs are just those seen, if there are any."""
    if demand.kind is CpuKind.OWN:
        return pools
    seen, books = demand.spec.present.cpus, room.books
    like = grant_of(demand, room.tree.root, CpuSet())
    exact = []
    for pool in pools:
        cpus = own | books.free_sharable(pool) - others
        if visible(cpus, like, room.tree) == seen:
            exact.append(pool)
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


def _grantable(room: Room) -> CpuSet:
    return room.tree.root.sharable | room.tree.root.isolated
