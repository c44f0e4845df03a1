"""Where the amounts come from that containers ask for: the first that knows counts.

Sources tell of whole pods, before any container exists. What they say is compared
with the cgroup values that the kubelet made, which are right where both differ and
stand alone where no source knows.
"""

from __future__ import annotations

from nri_resmgr.app.requests.annotation import ANNOTATIONS, AnnotationSource
from nri_resmgr.app.requests.cgroup_values import cgroup_values
from nri_resmgr.app.requests.chain import RequestSource, RequestSources
from nri_resmgr.app.requests.pod_requests import PodRequests

__all__ = [
    "ANNOTATIONS",
    "AnnotationSource",
    "PodRequests",
    "RequestSource",
    "RequestSources",
    "cgroup_values",
]
