"""Pools for introspection: their use, and their ranking for a container."""

from __future__ import annotations

from itertools import islice
from typing import Final

from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import (
    AT_ROOT,
    RESERVED_POOL,
    CpuKind,
    demand_of,
)
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.views import Candidate, PoolUse
from nri_resmgr.values import ONE_CPU, Bytes, MilliCpus

MOST: Final = 16
"""Maximum number of ranked pools; each costs as much as a decision."""


def uses_of(state: TopologyAwareState) -> tuple[PoolUse, ...]:
    """Return the use of the reserved CPUs, then that of the pools from the root down.

    Reserved CPUs are listed on their own, outside of the pools. Exclusive CPUs count
    in every pool that contains them; a share of CPUs counts in the pool that granted
    it and in those above.
    """
    tree = state.pool_ledger.tree
    pools = tuple(_of_pool(pool, state) for pool in reversed(tree.pools))
    return (_of_reserved(state), *pools) if tree.root.reserved else pools


def _of_pool(pool: Pool, state: TopologyAwareState) -> PoolUse:
    ledger, memory, tree = state.pool_ledger, state.memory, state.pool_ledger.tree
    exclusive = ledger.taken & pool.cpus
    return PoolUse(
        kind=pool.level.value,
        name=pool.name,
        cpus=pool.cpus,
        within="" if pool.parent is None else tree.pools[pool.parent].name,
        shared=ledger.free_sharable(pool),
        isolated=ledger.free_isolated(pool),
        exclusive=exclusive,
        reserved=pool.reserved,
        capacity=MilliCpus(ONE_CPU * len(pool.sharable | pool.isolated)),
        granted=MilliCpus(ONE_CPU * len(exclusive) + ledger.shared[pool.id]),
        free=MilliCpus(max(ledger.free_capacity(pool), 0)),
        mems=pool.nodes,
        memory=Bytes(memory.capacity(pool.nodes)),
        memory_granted=Bytes(memory.usage(pool.nodes)),
        containers=tuple(
            key
            for key in state.ledger.entries
            if state.grants[key].pool == pool.id
            and state.grants[key].kind not in AT_ROOT
        ),
    )


def _of_reserved(state: TopologyAwareState) -> PoolUse:
    ledger, cpus = state.pool_ledger, state.pool_ledger.tree.root.reserved
    return PoolUse(
        kind="reserved",
        name=RESERVED_POOL,
        cpus=cpus,
        reserved=cpus,
        capacity=MilliCpus(ONE_CPU * len(cpus)),
        granted=MilliCpus(ledger.reserved),
        free=MilliCpus(max(ledger.free_reserved, 0)),
        mems=ledger.tree.machine.nodes_of(cpus),
        containers=tuple(
            key
            for key in state.ledger.entries
            if state.grants[key].kind is CpuKind.RESERVED
        ),
    )


def ranking(
    container: str, state: TopologyAwareState, settings: TopologyAwareSettings
) -> tuple[Candidate, ...]:
    """Rank the pools for a known container, best first.

    All other containers keep their places. No placement is tried.
    """
    demand = demand_of(state.ledger.spec_of(container), settings)
    if demand.kind is CpuKind.CLAIMED:
        return ()  # it has no choice
    view = state.take_back(container).view(settings)
    return tuple(
        Candidate(
            one.pool.name,
            one.decided.value,
            tuple((criterion.value, score) for criterion, score in one.scores()),
        )
        for one in islice(candidates(demand, view), MOST)
    )
