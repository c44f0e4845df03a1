"""Whole-pod placement: reserved places for all containers of a pod in one pool."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.events import PodCreated
from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.errors import Failure, refusal
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.place import PoolPlacement, place_in_pool
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState, place_id
from nri_resmgr.values import Bytes, MilliCpus, PolicyError


def reserve_places(
    state: TopologyAwareState, event: PodCreated, settings: TopologyAwareSettings
) -> tuple[TopologyAwareState, Pool]:
    """Reserve places in one pool for all expected containers of a pod.

    Reserved and preserved containers are left out: they always run in the root.

    Returns:
        The state with the places, and their pool.

    Raises:
        PolicyError: No pool can take them all.
    """
    demands = _demands(event, settings)
    tried: list[Failure] = []
    whole, view = _sum_of(demands, event.pod), state.view(settings)
    for candidate in candidates(whole, view):
        try:
            return _all_within(state, demands, candidate.pool, settings), candidate.pool
        except PolicyError as error:
            tried.append((candidate.pool.name, error))
    raise refusal(whole, view, tried)


def needs_places(event: PodCreated, settings: TopologyAwareSettings) -> bool:
    """Return whether any container of a pod needs a reserved place."""
    return bool(_demands(event, settings))


def _demands(event: PodCreated, settings: TopologyAwareSettings) -> list[Demand]:
    specs = (
        msgspec.structs.replace(
            spec, id=place_id((event.pod, spec.name)), pod=event.pod
        )
        for spec in event.expected
    )
    demands = (demand_of(spec, settings) for spec in specs)
    return [one for one in demands if one.kind not in AT_ROOT]


def _sum_of(demands: list[Demand], pod: str) -> Demand:
    """Return the sum of demands, as if one container asked for all of it."""
    first, count = demands[0], sum(one.count for one in demands)
    fraction = MilliCpus(sum(one.fraction for one in demands))
    sharing = fraction or any(one.kind is CpuKind.SHARED for one in demands)
    limits = [one.spec.limit for one in demands]
    spec = msgspec.structs.replace(
        first.spec,
        id=pod,
        title=first.spec.title.rpartition("/")[0] or pod,
        memory_request=Bytes(sum(size_of(one.spec) for one in demands)),
        limit=None if None in limits else MilliCpus(sum(one or 0 for one in limits)),
        hints=tuple({hint for one in demands for hint in one.spec.hints}),
    )
    kind = CpuKind.MIXED if sharing else CpuKind.EXCLUSIVE
    return msgspec.structs.replace(
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
