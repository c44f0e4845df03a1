"""The built-in policies, in the order in which the documentation lists them."""

from __future__ import annotations

from typing import Final

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.dynamic_pools import DynamicPoolsPolicy
from nri_resmgr.policy.none import NonePolicy
from nri_resmgr.policy.podpools import PodpoolsPolicy
from nri_resmgr.policy.static import StaticPolicy
from nri_resmgr.policy.static_plus import StaticPlusPolicy
from nri_resmgr.policy.static_pools import StaticPoolsPolicy
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy

POLICIES: Final = (
    TopologyAwarePolicy,
    BalloonsPolicy,
    StaticPolicy,
    StaticPlusPolicy,
    DynamicPoolsPolicy,
    PodpoolsPolicy,
    StaticPoolsPolicy,
    NonePolicy,
)
