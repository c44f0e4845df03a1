"""Events in, decisions out: the only place where NRI meets policy."""

from __future__ import annotations

from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.app.status import status_of

__all__ = ["ResourcePolicy", "status_of"]
