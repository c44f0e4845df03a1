"""Resource requests of containers: the first source that agrees with cgroups wins.

A source declares the requests of a whole pod, before any container exists
(`RequestSource` in `chain`). `AnnotationSource` is one; `kubelet` has the one of the
Pods API, which comes before it where there is one. They are validated against the
cgroup values that the kubelet made (`cgroup_values`). Where all contradict these, or no
source knows the pod, the requests are reconstructed from these values.
"""

from __future__ import annotations

from nri_resmgr.app.requests.cgroup_values import cgroup_values, qos_of
from nri_resmgr.app.requests.chain import (
    ANNOTATIONS,
    AnnotationSource,
    RequestSource,
    RequestSources,
)
from nri_resmgr.app.requests.declared_requests import (
    LONGEST_REQUESTS,
    DeclaredRequests,
)

__all__ = [
    "ANNOTATIONS",
    "LONGEST_REQUESTS",
    "AnnotationSource",
    "DeclaredRequests",
    "RequestSource",
    "RequestSources",
    "cgroup_values",
    "qos_of",
]
