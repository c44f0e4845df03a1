"""What a pool can still grant, with the CPUs that can be exclusive among it."""

from __future__ import annotations

from nri_resmgr.policy.topology_aware.pool_ledger import PoolLedger
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.views import CpuRoom
from nri_resmgr.values import ONE_CPU, CpuSet


def cpu_room_of(ledger: PoolLedger, wide: PoolLedger, cpus: CpuSet) -> CpuRoom:
    """Return what one more container can be granted of some CPUs.

    Args:
        ledger: The grants.
        wide: The same where those that make way for exclusive CPUs have done so.
        cpus: Such as those of a NUMA node, which may be a pool, or a part of one, or
            have several pools in it.
    """
    # Children come first: the first pool that has all of them is the smallest.
    around = next(pool for pool in ledger.tree.pools if cpus <= pool.cpus)
    parts = [(around, cpus)]
    parts += [(one, one.cpus) for one in ledger.tree.pools if one.cpus <= cpus]
    found = [_of_part(pool, part, ledger, wide) for pool, part in parts]
    return CpuRoom.of(ONE_CPU * len(around.sharable & cpus), max(found))


def _of_part(pool: Pool, cpus: CpuSet, ledger: PoolLedger, wide: PoolLedger) -> int:
    """Return what can be granted of some CPUs of a pool."""
    free = len(ledger.free_sharable(pool) & cpus)
    capacity = min(ledger.free_capacity(pool), ONE_CPU * free)
    count = min(exclusive_room(pool, wide), free)
    return max(_limited(capacity, count), ONE_CPU * count)


def _limited(capacity: int, count: int) -> int:
    # One CPU more than can be exclusive would be refused, a fraction is shared.
    return min(capacity, ONE_CPU * count + ONE_CPU - 1)


def exclusive_room(pool: Pool, ledger: PoolLedger) -> int:
    """Return how many CPUs of a pool can be exclusive.

    What containers share in the pools below has to stay there, so that it can be fewer
    than the pool's own capacity says.
    """
    counts: dict[int, int] = {}
    for number in pool.subtree:  # children first
        below = ledger.tree.pools[number]
        parts = [
            one for one in below.subtree[:-1] if ledger.tree.pools[one].parent == number
        ]
        own = ledger.free_sharable(below) - CpuSet.union(
            ledger.tree.pools[one].cpus for one in parts
        )
        limit = max(ledger.headroom(below) // ONE_CPU, 0)
        counts[number] = min(limit, len(own) + sum(counts[one] for one in parts))
    return min(counts[pool.id], max(ledger.free_capacity(pool) // ONE_CPU, 0))
