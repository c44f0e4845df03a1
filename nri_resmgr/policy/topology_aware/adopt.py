"""Places for containers that run already: theirs if legal, else new ones, by age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec, Synchronized
from nri_resmgr.policy.ledger import gone_since, of_pods_there
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.pins import visible
from nri_resmgr.policy.topology_aware.place import (
    Earlier,
    Placement,
    as_it_was,
    fall_back,
    place,
)
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, grant_of
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import Room, Slot, TopologyAwareState
from nri_resmgr.values import CpuSet, PolicyError

Claims: TypeAlias = Callable[[Demand, Room], Iterable[Earlier]]

# Whose CPUs are certain goes first: what containers share is what these leave. Who
# asks for nothing goes last, for that may crowd in where all is promised.
_ORDER = (CpuKind.OWN, CpuKind.MIXED, CpuKind.RESERVED, CpuKind.PRESERVED)


def adopt(
    specs: Sequence[ContainerSpec],
    known: Mapping[str, Earlier],
    state: TopologyAwareState,
    settings: TopologyAwareSettings,
) -> tuple[TopologyAwareState, dict[str, Placement]]:
    """Place running containers; never refuses, for they run anyway.

    First come those whose grants are known, then those who are where they may
    be, then the others, each in the order given.

    Args:
        specs: Who runs, oldest first.
        known: Earlier grants by container id, for this tree of pools.
        state: What is granted to others.
        settings: What the policy is told to do.

    Returns:
        The state with all of them in it, and a placement for each, by id.
    """
    demands = [demand_of(spec, settings) for spec in specs]
    occupied = occupied_by(demands)

    def by_grant(demand: Demand, _room: Room) -> Iterable[Earlier]:
        found = known.get(demand.spec.id)
        return () if found is None else (found,)

    def by_place(demand: Demand, room: Room) -> Iterable[Earlier]:
        zone = demand.spec.present.mems
        return (Earlier(one, zone) for one in recall(demand, room, occupied))

    placed: dict[str, Placement] = {}
    for claims in (by_grant, by_place):
        for demand in sorted(demands, key=_certainty):
            if demand.spec.id not in placed:
                found = _kept(demand, state.room(settings), claims)
                state = _settled(state, demand, found, placed)
    # What runs cannot be refused.
    lenient = msgspec.structs.replace(settings, on_failure=OnFailure.SHARED)
    for demand in demands:
        if demand.spec.id not in placed:
            state = _settled(state, demand, _new(demand, state.room(lenient)), placed)
    return state, placed


def _certainty(demand: Demand) -> int:
    if demand.kind in _ORDER:
        return _ORDER.index(demand.kind)
    return len(_ORDER) + (not demand.fraction)


def _kept(demand: Demand, room: Room, claims: Claims) -> Placement | None:
    for claim in claims(demand, room):
        if found := as_it_was(demand, claim, room, Rule.KEPT):
            return found
    return None


def _new(demand: Demand, room: Room) -> Placement:
    """Place a container that is nowhere it may be."""
    try:
        return place(demand, room)
    except PolicyError as error:
        # Strict wishes refuse to begin; this one has begun.
        return fall_back(demand, room, str(error))


def _settled(
    state: TopologyAwareState,
    demand: Demand,
    found: Placement | None,
    placed: dict[str, Placement],
) -> TopologyAwareState:
    if found is None:
        return state
    placed[demand.spec.id] = found
    return state.put(demand.spec, found.grant, found.memory, demand.spec.present)


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


State = TopologyAwareState


def known_from(old: State, tree: PoolTree) -> dict[str, Earlier]:
    """Find the grants of an earlier state, made in other pools maybe.

    Who fell back for want of memory has nothing to insist on.

    Args:
        old: The earlier state.
        tree: The pools that there are.

    Returns:
        By container id, in pools of *tree*.
    """
    known = {}
    for key, entry in old.ledger.entries.items():
        here = _in_pool_of(tree, old.grants[key], old)
        if here is not None and _counts(entry.spec, old.memory):
            known[key] = Earlier(here, old.memory.zone_of(key))
    return known


def with_places(
    old: State, state: State, event: Synchronized, settings: TopologyAwareSettings
) -> State:
    """Keep the places of an earlier state that pods may come back to, or wait for.

    Args:
        old: The earlier state.
        state: What holds for those who run.
        event: Says who runs.
        settings: What the policy is told to do.
    """
    vacated = _vacated(old, state.books.tree, event)
    state = msgspec.structs.replace(state, vacated=MappingProxyType(vacated))
    named = {(one.pod, one.name) for one in event.specs}
    for slot, spec in of_pods_there(old.held, event).items():
        if slot not in named:
            state = _held_again(spec, old, state, settings)
    return state


def _vacated(old: State, tree: PoolTree, event: Synchronized) -> dict[Slot, Grant]:
    gone = {(s.pod, s.slot): old.grants[s.id] for s in gone_since(old.ledger, event)}
    found = of_pods_there({**old.vacated, **gone}, event)
    here = {slot: _in_pool_of(tree, grant, old) for slot, grant in found.items()}
    return {slot: grant for slot, grant in here.items() if grant is not None}


def _held_again(
    spec: ContainerSpec, old: State, state: State, settings: TopologyAwareSettings
) -> State:
    grant = _in_pool_of(state.books.tree, old.grants[spec.id], old)
    if grant is None:
        return state
    earlier = Earlier(grant, old.memory.zone_of(spec.id))
    room, demand = state.room(settings), demand_of(spec, settings)
    found = as_it_was(demand, earlier, room, Rule.OLD_PLACE)
    return state if found is None else state.hold(spec, found.grant, found.memory)


def _in_pool_of(tree: PoolTree, grant: Grant, old: State) -> Grant | None:
    """Return a grant as it is in the pool of the same name, if there is one."""
    if old.books.tree is tree:
        return grant
    pool = tree.named(old.books.tree.pools[grant.pool].name)
    return None if pool is None else msgspec.structs.replace(grant, pool=pool.id)


def _counts(spec: ContainerSpec, memory: MemoryLedger) -> bool:
    """Tell whether a container was promised the memory that it asks for."""
    promised = memory.grants[spec.id].request
    return (promised.size, promised.hugepages) == (size_of(spec), spec.hugepages)
