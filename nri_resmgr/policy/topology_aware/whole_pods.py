"""Whole-pod placement: reserved places for all containers of a pod in one pool."""

from __future__ import annotations

from functools import partial
from typing import Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, PodCreated
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.errors import Failure, refusal
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.nearest_place import nearest_place
from nri_resmgr.policy.topology_aware.place import PoolPlacement, place_in_pool
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import (
    NodeView,
    TopologyAwareState,
    place_id,
)
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


class _Places(msgspec.Struct, frozen=True):
    """Places for the containers of a pod within a pool, in order of their memory."""

    pool: Pool
    reserved: tuple[tuple[ContainerSpec, PoolPlacement], ...]
    displaced: tuple[Grant, ...] = ()

    @property
    def pool_id(self) -> int:
        """That of the pool that has them all."""
        return self.pool.id

    @property
    def grants(self) -> tuple[Grant, ...]:
        """A grant for each place."""
        return tuple(found.grant for _, found in self.reserved)

    def displacing(self, displaced: tuple[Grant, ...]) -> Self:
        """Return it with new grants of others, which make way."""
        return replace(self, displaced=displaced)

    def put(self, state: TopologyAwareState) -> TopologyAwareState:
        """Reserve them, and have others make way."""
        for spec, found in self.reserved:
            state = state.reserve_place(spec, found.grant, found.memory)
        return state.regrant(*self.displaced)


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
    whole = _sum_of(demands, pod)
    find = partial(_find_places, demands, whole, state)
    found = nearest_place(whole, state.view(settings), find)
    return PlacedPod(found.put(state), found.pool, found.displaced)


def _find_places(
    demands: list[Demand], whole: Demand, state: TopologyAwareState, view: NodeView
) -> _Places:
    tried: list[Failure] = []
    for candidate in candidates(whole, view):
        try:
            return _all_within(state, demands, candidate.pool, view)
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
    state: TopologyAwareState, demands: list[Demand], pool: Pool, view: NodeView
) -> _Places:
    reserved = []
    # With what others give up in *view*.
    state = replace(state, pool_ledger=view.pool_ledger)
    for demand in sorted(demands, key=lambda one: -one.count):
        found = place_in_pool(demand, pool, state.view(view.settings))
        state = state.reserve_place(demand.spec, found.grant, found.memory)
        reserved.append((demand.spec, found))
    return _Places(pool, tuple(reserved))
