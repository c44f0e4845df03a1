"""The static policy: exclusive CPUs for whole requests, one shared pool for others.

`policy` receives the events, and also reserves CPUs for whole pods; `place` chooses the
CPUs of one container or finds that it has to share. `settings` has the options and the
CPUs that they make available, `state` the grants and reserved places, `records` their
checkpoint form. `nri_resmgr.policy.static_plus` derives its policy from this one.
"""

from __future__ import annotations

from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.static.policy import StaticPolicy
from nri_resmgr.policy.static.settings import StaticSettings
from nri_resmgr.policy.static.state import StaticState

__all__ = ["OnFailure", "StaticPolicy", "StaticSettings", "StaticState"]
