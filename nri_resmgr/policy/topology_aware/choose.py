"""Ranking of the pools that may take a container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nri_resmgr.policy.topology_aware.criteria import (
    CAPACITY,
    ONLY_ONE,
    Comparison,
    Criterion,
    comparisons_of,
    has_isolated,
)
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand
from nri_resmgr.policy.topology_aware.hint_scores import cpus_near_all
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import NodeView


class RankedPool(msgspec.Struct, frozen=True):
    """A pool that may take a container.

    *decided* is the criterion that ranks it before the pools after it. Comparisons of
    pools are listed the most important first.
    """

    pool: Pool
    decided: Criterion
    comparisons: Sequence[Comparison] = ()

    def scores(self) -> tuple[tuple[Criterion, int], ...]:
        """Return the pool's score in each criterion, the most important first.

        More is better. Scores that the choice did not need are computed now.
        """
        return tuple(
            (criterion, int(row[self.pool.id])) for criterion, row in self.comparisons
        )


def candidates(demand: Demand, view: NodeView) -> Iterator[RankedPool]:
    """Yield the pools that may take a container, best first.

    Each is computed on demand. Pools without the capacity are left out; `take` checks
    that pools below keep the CPUs that they have granted. Reserved and preserved CPUs
    only exist at the root.
    """
    if demand.kind in AT_ROOT:
        yield RankedPool(view.tree.root, ONLY_ONE)
        return
    enough, pools = _with_capacity(demand, view), view.tree.pools
    if demand.spec.preferences.strict_hints:
        enough = [key for key in enough if _is_inside(demand, pools[key], view)]
    less = len(enough) < len(pools)
    comparisons = comparisons_of(demand, view)
    last = CAPACITY if less else ONLY_ONE
    while enough:
        best, decided = _best_of(enough, comparisons, last)
        yield RankedPool(pools[best], decided, comparisons)
        enough.remove(best)


def _best_of(
    pools: list[int], comparisons: Sequence[Comparison], last: Criterion
) -> tuple[int, Criterion]:
    """Find the best pool, and the criterion that decided against the last rival.

    No two pools are equal in all comparisons. Without a rival the criterion is *last*.
    """
    decided = last
    for criterion, row in comparisons:
        if len(pools) == 1:
            break
        best, most = [pools[0]], row[pools[0]]
        for key in pools[1:]:
            if (score := row[key]) > most:
                best, most = [key], score
            elif score == most:
                best.append(key)
        if len(best) < len(pools):
            pools, decided = best, criterion
    return pools[0], decided


def _with_capacity(demand: Demand, view: NodeView) -> list[int]:
    capacities, needed = view.pool_ledger.free_capacities, demand.capacity
    if not demand.isolated:
        if min(capacities) >= needed:  # as on most nodes
            return list(range(len(capacities)))
        return [key for key, free in enumerate(capacities) if free >= needed]
    return [
        pool.id
        for pool in view.tree.pools
        if has_isolated(demand, pool, view.pool_ledger)
        or (not demand.require_isolated and capacities[pool.id] >= needed)
    ]


def _is_inside(demand: Demand, pool: Pool, view: NodeView) -> bool:
    """Return whether all CPUs can be inside of every hint.

    All sharable CPUs of the pool count, since the shared set changes over time.
    """
    inside = cpus_near_all(demand.spec.hints, view.tree.machine)
    if demand.kind is not CpuKind.EXCLUSIVE and not pool.sharable <= inside:
        return False
    isolated = view.pool_ledger.free_isolated(pool) & inside
    if demand.isolated and len(isolated) >= demand.count:
        return True
    sharable = view.pool_ledger.free_sharable(pool) & inside
    return not demand.require_isolated and len(sharable) >= demand.count
