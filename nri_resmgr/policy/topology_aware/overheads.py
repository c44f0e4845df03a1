"""The overhead of pods: reserved in the pool of the pod's containers."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, Demand, demand_of
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.place import (
    PoolPlacement,
    fall_back,
    find_place,
    place_in_pool,
)
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import Slot, TopologyAwareState
from nri_resmgr.policy.topology_aware.whole_pods import placed_spec
from nri_resmgr.values import PolicyError


class PlacedOverhead(msgspec.Struct, frozen=True):
    """A state with the overhead of a pod, and where that is.

    Attributes:
        found: None where the overhead needs no place.
    """

    state: TopologyAwareState
    found: PoolPlacement | None = None


def slot_of(pod: str) -> Slot:
    """Return the slot of a pod's overhead."""
    return pod, OVERHEAD_NAME


def account_overhead(
    spec: ContainerSpec, state: TopologyAwareState, settings: TopologyAwareSettings
) -> PlacedOverhead:
    """Account the overhead of a pod: in the pool of its containers where that has room.

    The pod is there, so it is accounted as far as there is room: nothing is refused.
    Reserved pods, which run on the reserved CPUs, have none.
    """
    slot = slot_of(spec.pod)
    known = state.reserved_places.get(slot)
    spec = placed_spec(spec, spec.pod)
    if known is not None and _is_met(known, spec, state):
        return PlacedOverhead(state)
    left, demand = state.release_places(slot), demand_of(spec, settings)
    if demand.kind in AT_ROOT:
        return PlacedOverhead(left)
    pools = _pools_of(spec.pod, left)
    if known is not None:
        pools = (*pools, state.grants[known.id].pool)
    found = _within(demand, pools, left, settings) or _anywhere(demand, left, settings)
    if found is None:
        return PlacedOverhead(left)
    return PlacedOverhead(_with_place(spec, found, left), found)


def follow_container(
    spec: ContainerSpec, state: TopologyAwareState, settings: TopologyAwareSettings
) -> PlacedOverhead:
    """Move the overhead of a pod to the pool of its first container, where that fits.

    Its own pool was chosen before that of the container was known.
    """
    slot = slot_of(spec.pod)
    known = state.reserved_places.get(slot)
    pools = _pools_of(spec.pod, state)
    if known is None or not pools or state.grants[known.id].pool in pools:
        return PlacedOverhead(state)
    left = state.release_places(slot)
    found = _within(demand_of(known, settings), pools, left, settings)
    if found is None:
        return PlacedOverhead(state)
    # All whose pins change are in *found*: none of the others need be compared.
    moved = replace(_with_place(known, found, left), unsettled=state.unsettled)
    return PlacedOverhead(moved, found)


def _pools_of(pod: str, state: TopologyAwareState) -> tuple[int, ...]:
    """Return the pools of a pod's containers, the oldest first."""
    grants = (state.grants[key] for key in state.ledger.in_pod(pod))
    return tuple(one.pool for one in grants if one.kind not in AT_ROOT)


def _within(
    demand: Demand,
    pools: tuple[int, ...],
    state: TopologyAwareState,
    settings: TopologyAwareSettings,
) -> PoolPlacement | None:
    view = state.view(settings)
    for pool in pools:
        with suppress(PolicyError):
            return place_in_pool(demand, view.tree.pools[pool], view)
    return None


def _anywhere(
    demand: Demand, state: TopologyAwareState, settings: TopologyAwareSettings
) -> PoolPlacement | None:
    view = state.view(settings)
    try:
        found = find_place(demand, view)
    except PolicyError as error:
        try:
            found = fall_back(demand, view, str(error))
        except PolicyError:
            return None
    # Only containers are placed anew where there is room again. Where no CPU is shared
    # any more, there is none to account it on.
    grant = replace(found.grant, fell_back=False)
    return replace(found, grant=grant) if grant.shares else None


def _with_place(
    spec: ContainerSpec, found: PoolPlacement, state: TopologyAwareState
) -> TopologyAwareState:
    left = state.regrant(*found.displaced) if found.displaced else state
    return left.reserve_place(spec, found.grant, found.memory)


def _is_met(
    known: ContainerSpec, spec: ContainerSpec, state: TopologyAwareState
) -> bool:
    """Return whether this very overhead is accounted in full."""
    if (known.request, size_of(known)) != (spec.request, size_of(spec)):
        return False
    granted = state.memory.grants[known.id].request.size
    return (state.grants[known.id].fraction, granted) == (spec.request, size_of(spec))
