"""Better places for running containers that fell back, once there is room."""

from __future__ import annotations

from typing import TypeAlias

from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.place import (
    FormerGrant,
    PoolPlacement,
    place_again,
)
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState

State: TypeAlias = TopologyAwareState


def improve(
    state: State, settings: TopologyAwareSettings, besides: str = ""
) -> tuple[State, dict[str, PoolPlacement]]:
    """Place those that fell back anew, in the order in which they came.

    Only what gets more than it has moves. One that moves can leave room to others, for
    example CPUs that it shared while the reserved ones were full: so this is repeated
    until none moves. Each round but the last one ends the fall-back of a container or
    increases what one has, which is bounded by its request.

    Args:
        state: The state, in which something may have become free.
        settings: The policy's settings.
        besides: The id of a container that the decision is about, which stays.

    Returns:
        The new state, and the placements of those that moved, by id.
    """
    found: dict[str, PoolPlacement] = {}
    while moved := _round(state, settings, besides):
        state, placed = moved
        found |= placed
    return state, found


def _round(
    state: State, settings: TopologyAwareSettings, besides: str
) -> tuple[State, dict[str, PoolPlacement]] | None:
    waiting = {key for key, grant in state.grants.items() if grant.fell_back}
    if not waiting:
        return None
    found: dict[str, PoolPlacement] = {}
    hopeless: set[object] = set()
    for key, entry in state.ledger.entries.items():
        if key not in waiting or key == besides:
            continue
        former = FormerGrant(state.grants[key], state.memory.zone_of(key))
        demand = demand_of(entry.spec, settings)
        # Hundreds can have fallen back, most often all for the same reason.
        like = _amounts(demand, former, state)
        if like in hopeless:
            continue
        left = state.take_back(key)
        placement = place_again(demand, former, left.view(settings))
        if _is_better(placement, key, state):
            state = left.regrant(*placement.displaced).put(
                entry.spec, placement.grant, placement.memory, entry.last_sent
            )
            found[key] = placement
            waiting |= {one.container for one in placement.displaced if one.fell_back}
            hopeless.clear()
        elif like:
            hopeless.add(like)
    return (state, found) if found else None


def _amounts(demand: Demand, former: FormerGrant, state: State) -> object:
    """Return what decides whether a container fits; None where that is too much.

    Two with equal amounts, asked for and had, fit both or not at all.
    """
    spec, grant = demand.spec, former.grant
    if spec.preferences is not NO_PREFERENCES or spec.hints:
        return None
    had = state.memory.grants[spec.id].request
    return (
        *(demand.kind, demand.count, demand.fraction, demand.isolated, spec.qos),
        *(spec.request, spec.limit, spec.memory_request, spec.memory_limit),
        *(spec.hugepages, grant.kind, grant.pool, grant.fraction),
        *(former.zone, had.size, had.hugepages),
    )


def _is_better(placement: PoolPlacement, container: str, state: State) -> bool:
    """Return whether a container gets what it asks for, or at least more than it has.

    Nothing may decrease, so that no two of them can move in turn for ever.
    """
    grant, former = placement.grant, state.grants[container]
    if not grant.fell_back:
        return True
    had = former.fraction, state.memory.grants[container].request.size
    has = grant.fraction, placement.memory.grants[container].request.size
    if any(now < before for now, before in zip(has, had, strict=True)):
        return False
    leaves_reserved = former.kind is CpuKind.RESERVED and grant.shares
    return has != had or leaves_reserved
