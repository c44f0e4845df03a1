"""The CPU allocator: which CPUs to take out of the free ones, and which to give back.

Pure functions over `nri_resmgr.topology.Machine`. A pick is the best there is by
the order of `nri_resmgr.policy.cpus.costs`, not the first that a greedy walk met.
"""

from __future__ import annotations

from nri_resmgr.policy.cpus.allocate import allocate_cpus, release_cpus
from nri_resmgr.policy.cpus.errors import CpusExhausted
from nri_resmgr.policy.cpus.levels import Level
from nri_resmgr.policy.cpus.priorities import (
    CpuPriority,
    PrioritySets,
    machine_priorities,
)
from nri_resmgr.policy.cpus.request import (
    CoreUse,
    CpuPick,
    CpuRequest,
    Preferences,
    Reason,
    Rule,
)

__all__ = [
    "CoreUse",
    "CpuPick",
    "CpuPriority",
    "CpuRequest",
    "CpusExhausted",
    "Level",
    "Preferences",
    "PrioritySets",
    "Reason",
    "Rule",
    "allocate_cpus",
    "machine_priorities",
    "release_cpus",
]
