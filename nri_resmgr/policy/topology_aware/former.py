"""What a former state says of running containers: their places, and reserved ones.

The former state is that of a checkpoint, of the session before, or of another
configuration; see `topology_aware.adopt` for what becomes of it.

What it guarantees: a former grant counts as recent only if nothing that runs shows that
it was decided on again. So a container is not moved to what it had before.

How: by its own CPUs and memory nodes (`policy.reported`), and by those of others. Those
that share CPUs of a pool share all of them. So if another container shares CPUs that it
did not have, and this one would have got them in its former pool, and has not, it has
been moved to another pool since, in which its CPUs look the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Synchronized
from nri_resmgr.policy.ledger import former_places_since, of_pods_there
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.reported import Reported
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.pins import visible
from nri_resmgr.policy.topology_aware.place import FormerGrant, keep_place
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView, Slot, TopologyAwareState
from nri_resmgr.policy.whole_pods import announced_since
from nri_resmgr.values import NO_CPUS, CpuSet

State: TypeAlias = TopologyAwareState


def former_places_of(
    old: State,
    tree: PoolTree,
    specs: Sequence[ContainerSpec],
    settings: TopologyAwareSettings,
) -> dict[str, FormerGrant]:
    """Return the places of a former state by container id, in pools of *tree*.

    Containers that fell back because memory was short are left out.
    """
    known, reported = {}, Reported.of(specs)
    shared = _shared_since(old, tree, specs, settings) - reported.owned
    for spec in specs:
        key, entry = spec.id, old.ledger.entries.get(spec.id)
        if entry is None:
            continue
        here = _in_pool_of(tree, old.grants[key], old)
        if here is not None and _has_its_memory(entry.spec, old.memory):
            is_recent = reported.is_known(spec.present, entry) and not _lacks(
                spec.present.cpus, shared, here, tree
            )
            zone = old.memory.zone_of(key)
            known[key] = FormerGrant(here, zone, is_recent=is_recent)
    return known


def _shared_since(
    old: State,
    tree: PoolTree,
    specs: Sequence[ContainerSpec],
    settings: TopologyAwareSettings,
) -> CpuSet:
    """Return the CPUs that containers share by decisions that a former state lacks.

    Containers that are not in it count if they were pinned to CPUs that may be shared.
    """
    entries, grants, since = old.ledger.entries, old.grants, NO_CPUS
    for spec in specs:
        present, entry = spec.present.cpus, entries.get(spec.id)
        if demand_of(spec, settings).kind is not CpuKind.SHARED:
            continue
        if entry is None:
            since |= present if present <= tree.root.sharable else NO_CPUS
        elif sent := entry.last_sent.cpus:
            since |= present - sent
    # The record of one that shares may still have exclusive CPUs of others.
    return since - CpuSet.union(
        grants[one.id].cpus for one in specs if one.id in grants
    )


def _lacks(present: CpuSet, shared: CpuSet, grant: Grant, tree: PoolTree) -> bool:
    """Return whether it lacks *shared* CPUs that it would have by a former grant."""
    if not present or grant.kind not in SHARING:
        return False
    cpus = tree.pools[grant.pool].sharable & (present | shared)
    return not visible(cpus, grant, tree) <= present


def view_for(demand: Demand, view: NodeView) -> NodeView:
    """Return the view in which a demand's former place is looked at.

    For shared CPUs, containers without a request use nothing. They fit where all CPU is
    granted: what another had before they came, it has still.
    """
    if demand.count:
        return view
    return replace(view, pool_ledger=view.pool_ledger.of_requests())


def restore_places(
    old: State, state: State, event: Synchronized, settings: TopologyAwareSettings
) -> State:
    """Restore what is kept for present pods from a former state."""
    former_places = _former_places(old, state.pool_ledger.tree, event)
    state = replace(state, former_places=MappingProxyType(former_places))
    named = {(one.pod, one.name) for one in event.specs}
    for slot, spec in of_pods_there(old.reserved_places, event).items():
        if slot not in named:
            state = _reserve_again(spec, old, state, settings)
    return replace(state, announced=announced_since(old.announced, event))


def _former_places(
    old: State, tree: PoolTree, event: Synchronized
) -> dict[Slot, Grant]:
    former, grants = old.former_places, old.grants
    found = former_places_since(former, old.ledger, event, grants.__getitem__)
    here = {slot: _in_pool_of(tree, grant, old) for slot, grant in found.items()}
    return {slot: grant for slot, grant in here.items() if grant is not None}


def _reserve_again(
    spec: ContainerSpec, old: State, state: State, settings: TopologyAwareSettings
) -> State:
    grant = _in_pool_of(state.pool_ledger.tree, old.grants[spec.id], old)
    if grant is None:
        return state
    former = FormerGrant(grant, old.memory.zone_of(spec.id))
    demand = demand_of(spec, settings)
    view = view_for(demand, state.view(settings))
    found = keep_place(demand, former, view, Rule.OLD_PLACE)
    if found is None:
        return state
    return state.reserve_place(spec, found.grant, found.memory)


def _in_pool_of(tree: PoolTree, grant: Grant, old: State) -> Grant | None:
    """Return a grant in the pool of the same name, if there is one."""
    if old.pool_ledger.tree is tree:
        return grant
    pool = tree.named(old.pool_ledger.tree.pools[grant.pool].name)
    return None if pool is None else replace(grant, pool=pool.id)


def _has_its_memory(spec: ContainerSpec, memory: MemoryLedger) -> bool:
    """Return whether a container was granted the memory that it asks for."""
    granted = memory.grants[spec.id].request
    return (granted.size, granted.hugepages) == (size_of(spec), spec.hugepages)
