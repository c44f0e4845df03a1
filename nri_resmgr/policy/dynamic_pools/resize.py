"""CPUs of pools whose sizes change."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.policy.cpus import (
    CpuPreferences,
    CpuPriority,
    CpuRequest,
    PrioritySets,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.policy.cpus.index import index_of
from nri_resmgr.policy.dynamic_pools.settings import SHARED, DynamicPool
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet


def resized(
    present: Mapping[str, CpuSet],
    sizes: Mapping[str, int],
    pools: Mapping[str, DynamicPool],
    free: CpuSet,
    machine: Machine,
) -> dict[str, CpuSet]:
    """Return the CPUs of pools of new sizes.

    Pools that shrink give CPUs away first, and those that grow get these: no CPU
    moves between two pools of unchanged size. The shared pool, and pools without a
    priority, give away first what growing pools prefer.

    Args:
        present: CPUs by pool, as far as it has any.
        sizes: Number of CPUs by pool; together all of *free*.
        pools: By name, in the order in which they choose.
        free: CPUs of all pools together.
        machine: That of the CPUs.
    """
    # CPUs can have gone offline, or have been reserved.
    found = {name: present.get(name, NO_CPUS) & free for name in sizes}
    wanted = _wanted(found, sizes, pools, free, machine)
    for name, size in sizes.items():
        held = found[name]
        over = max(0, len(held) - size)
        prefers = CpuPreferences(far=wanted, priority=pools[name].priority)
        found[name] = held - release_cpus(held, over, machine, prefers).cpus
    for name, size in sizes.items():
        held = found[name]
        rest = free - CpuSet.union(found.values())
        request = CpuRequest(
            count=size - len(held),
            free=rest,
            held=held,
            priority=pools[name].priority,
        )
        found[name] = held | allocate_cpus(request, machine).cpus
    return found


def _wanted(
    held: Mapping[str, CpuSet],
    sizes: Mapping[str, int],
    pools: Mapping[str, DynamicPool],
    free: CpuSet,
    machine: Machine,
) -> CpuSet:
    """Return the CPUs that growing pools with a priority take if they can choose."""
    if index_of(machine).priorities == PrioritySets():
        # All CPUs are alike: those that shrink stay close together.
        return NO_CPUS
    choosy = [
        name
        for name in sizes
        if name != SHARED and pools[name].priority is not CpuPriority.ANY
    ]
    # Choosy pools that shrink keep the best that they have; the shared pool, which
    # begins with all CPUs, does not.
    kept = CpuSet.union(
        cpus
        for name, cpus in held.items()
        if name in choosy or len(cpus) <= sizes[name]
    )
    wanted = NO_CPUS
    for name in choosy:
        missing = max(0, sizes[name] - len(held[name]))
        offered = free - kept - wanted
        request = CpuRequest(
            count=min(missing, len(offered)),
            free=offered,
            held=held[name],
            priority=pools[name].priority,
        )
        wanted |= allocate_cpus(request, machine).cpus
    return wanted
