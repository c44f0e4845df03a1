"""The static-pools policy: CPU lists by name, as CMK had them.

`policy` has the decisions, `settings` the pools and their lists, `errors` the refusals.
"""

from nri_resmgr.policy.static_pools.policy import (
    EXCLUSIVE_LISTS,
    ListPlace,
    StaticPoolsPolicy,
    StaticPoolsState,
)
from nri_resmgr.policy.static_pools.settings import (
    INFRA,
    SHARED,
    CpuList,
    StaticPool,
    StaticPoolsSettings,
)

__all__ = [
    "EXCLUSIVE_LISTS",
    "INFRA",
    "SHARED",
    "CpuList",
    "ListPlace",
    "StaticPool",
    "StaticPoolsPolicy",
    "StaticPoolsSettings",
    "StaticPoolsState",
]
