"""Which pool a container goes to, and which one if that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nri_resmgr.policy.topology_aware.criteria import (
    CAPACITY,
    ONLY_ONE,
    Stage,
    Step,
    has_isolated,
    steps_of,
)
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, Demand
from nri_resmgr.policy.topology_aware.hint_scores import cpus_near_all
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import Room


class Candidate(msgspec.Struct, frozen=True):
    """A pool that may take a container.

    Attributes:
        pool: The pool.
        decided: What told it from the last rival that was as good until then, among
            the pools that come after it.
        steps: What pools are compared by.
    """

    pool: Pool
    decided: Stage
    steps: Sequence[Step] = ()

    def scores(self) -> tuple[tuple[Stage, int], ...]:
        """Say how good the pool is in every respect, the weightiest first.

        More is better. What the choice did not need is found out now.
        """
        return tuple((stage, int(row[self.pool.id])) for stage, row in self.steps)


def candidates(demand: Demand, room: Room) -> Iterator[Candidate]:
    """Yield the pools that may take a container, best first.

    The second is only found when it is asked for. Pools without the capacity are
    left out; that those below keep what they have granted is for `take` to see.

    Args:
        demand: What is asked for. Reserved and preserved CPUs have but one place.
        room: The node without the container.
    """
    if demand.kind in AT_ROOT:
        yield Candidate(room.tree.root, ONLY_ONE)
        return
    enough, pools = _with_capacity(demand, room), room.tree.pools
    if demand.spec.preferences.strict_hints:
        enough = [key for key in enough if _is_inside(demand, pools[key], room)]
    less = len(enough) < len(pools)
    steps = steps_of(demand, room)
    last = CAPACITY if less else ONLY_ONE
    while enough:
        best, decided = _best_of(enough, steps, last)
        yield Candidate(pools[best], decided, steps)
        enough.remove(best)


def _best_of(pools: list[int], steps: Sequence[Step], last: Stage) -> tuple[int, Stage]:
    """Find the best pool, and what told it from the last rival.

    Args:
        pools: Ids, at least one.
        steps: Comparisons, the weightiest first; no two pools are alike in all.
        last: What tells the last one from those that come after.
    """
    decided = last
    for stage, row in steps:
        if len(pools) == 1:
            break
        best, most = [pools[0]], row[pools[0]]
        for key in pools[1:]:
            if (merit := row[key]) > most:
                best, most = [key], merit
            elif merit == most:
                best.append(key)
        if len(best) < len(pools):
            pools, decided = best, stage
    return pools[0], decided


def _with_capacity(demand: Demand, room: Room) -> list[int]:
    spares, needed = room.books.spares, demand.capacity
    if not demand.isolated:
        if min(spares) >= needed:  # as on most nodes
            return list(range(len(spares)))
        return [key for key, spare in enumerate(spares) if spare >= needed]
    return [
        pool.id
        for pool in room.tree.pools
        if has_isolated(demand, pool, room.books)
        or (not demand.require_isolated and spares[pool.id] >= needed)
    ]


def _is_inside(demand: Demand, pool: Pool, room: Room) -> bool:
    """Tell whether all CPUs can be inside of every hint.

    What a pool shares can be all of it, sooner or later.
    """
    inside = cpus_near_all(demand.spec.hints, room.tree.machine)
    if demand.kind is not CpuKind.OWN and not pool.sharable <= inside:
        return False
    isolated = room.books.free_isolated(pool) & inside
    if demand.isolated and len(isolated) >= demand.count:
        return True
    sharable = room.books.free_sharable(pool) & inside
    return not demand.require_isolated and len(sharable) >= demand.count
