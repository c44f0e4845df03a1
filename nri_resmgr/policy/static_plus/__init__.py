"""The static-plus policy: exclusive CPUs for whole CPUs of any request.

It derives `StaticPolicy`: `settings` says what containers ask for, `policy` how mixed
grants are pinned.
"""

from __future__ import annotations

from nri_resmgr.policy.static_plus.policy import StaticPlusPolicy
from nri_resmgr.policy.static_plus.settings import StaticPlusSettings

__all__ = ["StaticPlusPolicy", "StaticPlusSettings"]
