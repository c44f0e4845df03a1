"""Requests that a webhook has written into an annotation of the pod."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nri_resmgr.app.requests.pod_requests import PodRequests
from nri_resmgr.stub.model import Pod

# Of nri-plugins' webhook and of CRI-RM's; the first that a pod has counts.
ANNOTATIONS: Final = ("noderesource.dev/resources", "intel.com/resources")


class AnnotationSource:
    """Reads a pod's annotation once, and keeps what it says while the pod lives.

    What cannot be read is as good as not there: it is logged, and the cgroup values
    count.
    """

    def __init__(self) -> None:
        self._read: dict[str, PodRequests | None] = {}

    def pod_requests(self, pod: Pod) -> PodRequests | None:
        """Say what the containers of *pod* ask for; None without an annotation."""
        if pod.id in self._read:
            return self._read[pod.id]
        annotations = pod.annotations
        for key in ANNOTATIONS:
            if (text := annotations.get(key)) is not None:
                told = self._read[pod.id] = _read(pod, key, text)
                return told
        return None

    def forget(self, pod: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._read.pop(pod, None)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is known of other pods: nobody may have told of their end."""
        self._read = {key: one for key, one in self._read.items() if key in pods}


def _read(pod: Pod, key: str, text: str) -> PodRequests | None:
    # Most nodes have no webhook, and the start of the daemon is dear.
    from nri_resmgr.app.requests.webhook import read_or_warn

    return read_or_warn(pod, key, text)
