"""What an earlier state is good for when the runtime says anew what runs."""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec, Synchronized
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.population import gone_since, of_pods_there
from nri_resmgr.policy.topology_aware.demand import demand_of
from nri_resmgr.policy.topology_aware.place import Earlier, as_it_was
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.promise import size_of
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import Slot, TopologyAwareState

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
