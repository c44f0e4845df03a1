"""Better places for running containers, as pools have changed since they came."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.choose import RankedPool, candidates
from nri_resmgr.policy.topology_aware.criteria import CAPACITY, Criterion
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.place import (
    FormerGrant,
    PoolPlacement,
    move_to,
)
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView, TopologyAwareState
from nri_resmgr.values import ONE_CPU, PolicyError

State: TypeAlias = TopologyAwareState

# Pools that differ in these alone are equally good for a container that runs.
_NO_REASON: Final = (Criterion.DISTURBANCE, Criterion.ID)


def rebalance(
    state: State, settings: TopologyAwareSettings, limit: int
) -> tuple[State, dict[str, PoolPlacement]]:
    """Move containers that share CPUs to where they would be placed now.

    They are visited in the order in which they came, each once and beside all others
    as they are by then. Exclusive CPUs stay, as moving these costs more than a better
    place gains, and so do the reserved and the preserved. A container that would get
    an equally good pool stays as well.

    Args:
        state: The state.
        settings: The policy's settings.
        limit: The most containers that may move.

    Returns:
        The new state, and the placements of those that moved, by id.
    """
    found: dict[str, PoolPlacement] = {}
    for key, entry in state.ledger.entries.items():
        if len(found) >= limit:
            break
        grant = state.grants[key]
        if grant.kind is not CpuKind.SHARED or grant.fell_back:
            continue
        former = FormerGrant(grant, state.memory.zone_of(key))
        demand = demand_of(entry.spec, settings)
        left = state.take_back(key)
        if placement := _better(demand, former, left.view(settings)):
            memory, sent = placement.memory, entry.last_sent
            state = left.put(entry.spec, placement.grant, memory, sent)
            found[key] = placement
    return state, found


def _better(
    demand: Demand, former: FormerGrant, view: NodeView
) -> PoolPlacement | None:
    """Find a better pool for a container than its former one, if there is any."""
    stay = former.grant.pool
    for candidate in candidates(demand, view):
        if candidate.pool.id == stay:
            return None
        criterion = _gain(candidate, stay)
        if criterion is None:
            return None  # those that follow are no better
        try:
            found = move_to(candidate.pool, demand, former, view)
        except PolicyError:
            continue
        name = view.tree.pools[stay].name
        return replace(
            found,
            rule=Rule.REBALANCED,
            decided=criterion.value,
            detail=f"it was in {name}",
        )
    return None


def _gain(candidate: RankedPool, stay: int) -> Criterion | None:
    """Return the criterion in which a pool is better than the former one, if it is."""
    for criterion, row in candidate.comparisons:
        if (gain := row[candidate.pool.id] - row[stay]) == 0:
            continue
        if criterion in _NO_REASON:
            return None
        # Free CPU changes with each container; less than a CPU is no reason to move.
        if criterion is Criterion.SPREAD and gain < ONE_CPU:
            return None
        return criterion if gain > 0 else CAPACITY
    return None
