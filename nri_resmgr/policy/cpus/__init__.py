"""The CPU allocator: CPUs to take out of the free ones, and CPUs to release.

Pure functions over `nri_resmgr.topology.Machine`. A pick is the best one by the order
of `costs`, not the first of a greedy walk. `allocate` makes a `problem` of a request;
`uniform` solves it where CPUs are interchangeable (with `limits` to prune), `search`
where they differ. `index` and `levels` are the machine's groups.
"""

from __future__ import annotations

from nri_resmgr.policy.cpus.allocate import allocate_cpus, release_cpus
from nri_resmgr.policy.cpus.levels import TopologyLevel
from nri_resmgr.policy.cpus.priorities import (
    CpuPriority,
    PrioritySets,
    machine_priorities,
)
from nri_resmgr.policy.cpus.request import (
    CoreUse,
    CpuPick,
    CpuPreferences,
    CpuRequest,
    CpusExhausted,
    PickReason,
    PickRule,
)

__all__ = [
    "CoreUse",
    "CpuPick",
    "CpuPreferences",
    "CpuPriority",
    "CpuRequest",
    "CpusExhausted",
    "PickReason",
    "PickRule",
    "PrioritySets",
    "TopologyLevel",
    "allocate_cpus",
    "machine_priorities",
    "release_cpus",
]
