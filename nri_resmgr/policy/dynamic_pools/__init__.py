"""The dynamic-pools policy: pools of CPUs that grow and shrink as they are used.

* `settings`: the pools.
* `sizes`: the number of CPUs of each pool, by requests and by how busy its CPUs are.
* `resize`: which CPUs a pool gives away and gets.
* `policy`: which container runs in which pool.
"""

from __future__ import annotations

from nri_resmgr.policy.dynamic_pools.policy import DynamicPoolsPolicy, DynamicPoolsState
from nri_resmgr.policy.dynamic_pools.settings import (
    RESERVED,
    SHARED,
    DynamicPool,
    DynamicPoolsSettings,
)

__all__ = [
    "RESERVED",
    "SHARED",
    "DynamicPool",
    "DynamicPoolsPolicy",
    "DynamicPoolsSettings",
    "DynamicPoolsState",
]
