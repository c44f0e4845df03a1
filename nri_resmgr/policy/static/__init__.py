"""The static policy: exclusive CPUs for whole requests, one shared pool for others."""

from __future__ import annotations

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.static.policy import StaticPolicy
from nri_resmgr.policy.static.settings import StaticSettings, Supply
from nri_resmgr.policy.static.state import StaticState

__all__ = ["OnFailure", "StaticPolicy", "StaticSettings", "StaticState", "Supply"]
