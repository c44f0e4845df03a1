"""Whole-pod placement: reserved places for all containers of a pod in one pool."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, PodCreated
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.errors import Failure, refusal
from nri_resmgr.policy.topology_aware.make_room import (
    make_way,
    may_be_in_the_way,
    movable_grants,
    without,
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
        displaced: New grants of containers without a request that make way.
    """

    state: TopologyAwareState
    pool: Pool
    displaced: tuple[Grant, ...] = ()


def reserve_places(
    state: TopologyAwareState,
    pod: str,
    demands: list[Demand],
    settings: TopologyAwareSettings,
) -> PlacedPod:
    """Reserve places for all expected containers of a pod in one pool.

    Containers without a request make way, as for a single container.

    Raises:
        PolicyError: No pool can take them all.
    """
    whole = _sum_of(demands, pod)
    try:
        return _reserve(state, whole, demands, settings)
    except PolicyError:
        view = state.view(settings)
        if not may_be_in_the_way(whole, view.pool_ledger):
            raise
        movable = movable_grants(view)
        bare = replace(state, pool_ledger=without(movable, view).pool_ledger)
        with suppress(PolicyError):
            found = _reserve(bare, whole, demands, settings)
            displaced = make_way(movable, found.state.pool_ledger)
            if displaced is not None:
                return _made_way(found, movable, displaced)
        raise


def _made_way(
    found: PlacedPod, movable: Sequence[Grant], displaced: tuple[Grant, ...]
) -> PlacedPod:
    """Return the *movable* to their pools, and the *displaced* of these to others."""
    ledger = found.state.pool_ledger
    for grant in movable:
        ledger = ledger.add(grant)
    state = replace(found.state, pool_ledger=ledger).regrant(*displaced)
    return replace(found, state=state, displaced=displaced)


def _reserve(
    state: TopologyAwareState,
    whole: Demand,
    demands: list[Demand],
    settings: TopologyAwareSettings,
) -> PlacedPod:
    tried: list[Failure] = []
    view = state.view(settings)
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
