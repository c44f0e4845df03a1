"""Whole-pod placement: reserved places for all containers of a pod in one pool."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, PodCreated
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.errors import Failure, refusal
from nri_resmgr.policy.topology_aware.make_room import (
    Yielding,
    all_that_share,
    could_be_nearer,
    may_be_in_the_way,
    movable_grants,
)
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.place import PoolPlacement, place_in_pool
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState, place_id
from nri_resmgr.values import Bytes, MilliCpus, PolicyError


class PlacedPod(msgspec.Struct, frozen=True):
    """A pod whose places are reserved.

    Attributes:
        state: Has the places.
        pool: The pool of them all.
        displaced: New grants of containers that make way.
    """

    state: TopologyAwareState
    pool: Pool
    displaced: tuple[Grant, ...] = ()


_Find: TypeAlias = Callable[[TopologyAwareState], PlacedPod]
"""Reserves all places of a pod in one pool; refuses if none has them."""


def reserve_places(
    state: TopologyAwareState,
    pod: str,
    demands: list[Demand],
    settings: TopologyAwareSettings,
) -> PlacedPod:
    """Reserve places for all expected containers of a pod in one pool.

    Others make way, as for a single container: those without a request where nothing
    else helps, and those that share CPUs where a pod with exclusive CPUs has no place
    without, or only one in a larger pool.

    Raises:
        PolicyError: No pool can take them all.
    """
    whole, find = _sum_of(demands, pod), partial(_reserve, demands, pod, settings)
    try:
        found = _beside_requests(state, whole, find, settings)
    except PolicyError:
        other = _where_others_move(state, whole, -1, find, settings)
        if other is None:
            raise
        return other
    depth = found.pool.depth
    return _where_others_move(state, whole, depth, find, settings) or found


def _beside_requests(
    state: TopologyAwareState,
    whole: Demand,
    find: _Find,
    settings: TopologyAwareSettings,
) -> PlacedPod:
    """Reserve places, if need be where only containers without a request are."""
    try:
        return find(state)
    except PolicyError:
        view = state.view(settings)
        if not may_be_in_the_way(whole, view.pool_ledger):
            raise
        found = _beside(Yielding(movable_grants(view)), state, find, settings)
        if found is None:
            raise
        return found


def _where_others_move(
    state: TopologyAwareState,
    whole: Demand,
    depth: int,
    find: _Find,
    settings: TopologyAwareSettings,
) -> PlacedPod | None:
    """Reserve places deeper in the tree where all that share make way, if any."""
    view = state.view(settings)
    if not could_be_nearer(whole, depth, view.pool_ledger):
        return None
    yielding = all_that_share(view)
    if yielding.is_empty:
        return None
    found = _beside(yielding, state, find, settings)
    return found if found is not None and found.pool.depth > depth else None


def _beside(
    yielding: Yielding,
    state: TopologyAwareState,
    find: _Find,
    settings: TopologyAwareSettings,
) -> PlacedPod | None:
    """Reserve places where others make way; None if that does not help."""
    view = yielding.give_way(state.view(settings))
    with suppress(PolicyError):
        found = find(replace(state, pool_ledger=view.pool_ledger))
        after = found.state.pool_ledger
        displaced = yielding.settle(after)
        if displaced is not None:
            back = replace(found.state, pool_ledger=yielding.come_back(after))
            return replace(found, state=back.regrant(*displaced), displaced=displaced)
    return None


def _reserve(
    demands: list[Demand],
    pod: str,
    settings: TopologyAwareSettings,
    state: TopologyAwareState,
) -> PlacedPod:
    tried: list[Failure] = []
    whole, view = _sum_of(demands, pod), state.view(settings)
    for candidate in candidates(whole, view):
        try:
            after = _all_within(state, demands, candidate.pool, settings)
            return PlacedPod(after, candidate.pool)
        except PolicyError as error:
            tried.append((candidate.pool.name, error))
    raise refusal(whole, view, tried)


def demands_of(event: PodCreated, settings: TopologyAwareSettings) -> list[Demand]:
    """Return the demands of a pod's containers that need a reserved place.

    Reserved and preserved containers are left out: they always run in the root.
    """
    specs = (placed_spec(spec, event.pod) for spec in event.expected)
    demands = (demand_of(spec, settings) for spec in specs)
    found = [one for one in demands if one.kind not in AT_ROOT]
    if found and event.overhead:
        own = demand_of(placed_spec(event.overhead, event.pod), settings)
        found += () if own.kind in AT_ROOT else (own,)
    return found


def placed_spec(spec: ContainerSpec, pod: str) -> ContainerSpec:
    """Return an expected container with the id of its place."""
    return replace(spec, id=place_id((pod, spec.name)), pod=pod)


def _sum_of(demands: list[Demand], pod: str) -> Demand:
    """Return the sum of demands, as if one container asked for all of it."""
    first, count = demands[0], sum(one.count for one in demands)
    fraction = MilliCpus(sum(one.fraction for one in demands))
    sharing = fraction or any(one.kind is CpuKind.SHARED for one in demands)
    limits = [one.spec.limit for one in demands]
    spec = replace(
        first.spec,
        id=pod,
        title=first.spec.title.rpartition("/")[0] or pod,
        memory_request=Bytes(sum(size_of(one.spec) for one in demands)),
        limit=None if None in limits else MilliCpus(sum(one or 0 for one in limits)),
        hints=tuple({hint for one in demands for hint in one.spec.hints}),
    )
    kind = CpuKind.MIXED if sharing else CpuKind.EXCLUSIVE
    return replace(
        first,
        spec=spec,
        kind=kind if count else CpuKind.SHARED,
        count=count,
        fraction=fraction,
        isolated=False,
        require_isolated=False,
    )


def _all_within(
    state: TopologyAwareState,
    demands: list[Demand],
    pool: Pool,
    settings: TopologyAwareSettings,
) -> TopologyAwareState:
    for demand in sorted(demands, key=lambda one: -one.count):
        found: PoolPlacement = place_in_pool(demand, pool, state.view(settings))
        state = state.reserve_place(demand.spec, found.grant, found.memory)
    return state
