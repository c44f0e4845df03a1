"""Source of requests: an annotation that a webhook writes into the pod."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nri_resmgr.app.requests.declared_requests import DeclaredRequests
from nri_resmgr.stub.model import Pod

# Of nri-plugins' webhook and of CRI-RM's; the first one that a pod has is read.
ANNOTATIONS: Final = ("noderesource.dev/resources", "intel.com/resources")


class AnnotationSource:
    """Reads a pod's annotation once, and stores the result until the pod is removed.

    An annotation that cannot be read is logged and ignored.
    """

    def __init__(self) -> None:
        self._read: dict[str, DeclaredRequests | None] = {}

    def pod_requests(self, pod: Pod) -> DeclaredRequests | None:
        """Return the requests of a pod's containers; None without an annotation."""
        if pod.id in self._read:
            return self._read[pod.id]
        annotations = pod.annotations
        for key in ANNOTATIONS:
            if (text := annotations.get(key)) is not None:
                found = self._read[pod.id] = _read(pod, key, text)
                return found
        return None

    def forget(self, pod: str) -> None:
        """Drop the result of a removed pod."""
        self._read.pop(pod, None)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop the results of other pods: events of their removal may be missed."""
        self._read = {key: one for key, one in self._read.items() if key in pods}


def _read(pod: Pod, key: str, text: str) -> DeclaredRequests | None:
    # Late: on the start path, and most nodes have no webhook.
    from nri_resmgr.app.requests.webhook import read_or_warn

    return read_or_warn(pod, key, text)
