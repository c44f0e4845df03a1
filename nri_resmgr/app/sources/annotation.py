"""Requests that a webhook has written into an annotation of the pod."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

import attrs

from nri_resmgr.app.sources.errors import BadResources
from nri_resmgr.app.sources.pod_requests import PodRequests
from nri_resmgr.app.sources.resource_requirements import (
    Misplaced,
    mapping,
    requests_of,
)
from nri_resmgr.log import Logger
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Pod

log = Logger(__name__)

# Of nri-plugins' webhook and of CRI-RM's; the first that a pod has counts.
ANNOTATIONS: Final = ("noderesource.dev/resources", "intel.com/resources")

_CONTAINERS: Final = "containers"
_INIT: Final = "initContainers"
_POD: Final = "pod"

_SHOWN: Final = 200  # characters of a place, which has names that nobody checked


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
                told = self._read[pod.id] = _read_or_warn(pod, key, text)
                return told
        return None

    def forget(self, pod: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._read.pop(pod, None)

    def keep_only(self, pods: Collection[str]) -> None:
        """Drop what is known of other pods: nobody may have told of their end."""
        self._read = {key: one for key, one in self._read.items() if key in pods}


def read_resources(text: str) -> PodRequests:
    """Read the annotation of a webhook.

    Args:
        text: JSON, ``{"initContainers": {NAME: ResourceRequirements},
            "containers": {NAME: ResourceRequirements}}``. We also take a "pod" with
            the pod's own, and ``"restartPolicy": "Always"`` in what belongs to a
            sidecar. Other keys say nothing.

    Raises:
        Misplaced: It is something else.
    """
    # Recursion: brackets inside of brackets, thousands of them.
    try:
        # Amounts that are written as numbers are read as the text that they are.
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise Misplaced("", f"not JSON: {error}") from None
    content = mapping(document, "")
    pod = requests_of(content[_POD], _POD) if _POD in content else None
    containers = mapping(content.get(_CONTAINERS), _CONTAINERS)
    init = mapping(content.get(_INIT), _INIT)
    return PodRequests(
        containers={
            name: _of_pod(requests_of(one, f"{_CONTAINERS}.{name}"), pod)
            for name, one in containers.items()
        },
        init={
            name: _of_pod(requests_of(one, f"{_INIT}.{name}"), pod)
            for name, one in init.items()
        },
        sidecars=frozenset(name for name, one in init.items() if _always(one)),
        pod=pod,
    )


def _read_or_warn(pod: Pod, key: str, text: str) -> PodRequests | None:
    try:
        return read_resources(text)
    except Misplaced as error:
        name = f"{pod.namespace}/{pod.name}"
        bad = BadResources(name, key, error.at[:_SHOWN], error.why)
        log.warning("requests.unreadable", pod=pod.id, error=str(bad), instead="cgroup")
        return None


def _of_pod(requests: Requests, pod: Requests | None) -> Requests:
    # The kubelet gives a container without limits those of its pod.
    if pod is None:
        return requests
    return attrs.evolve(
        requests,
        cpu_limit=requests.cpu_limit or pod.cpu_limit,
        memory_limit=requests.memory_limit or pod.memory_limit,
    )


def _always(content: object) -> bool:
    return isinstance(content, dict) and content.get("restartPolicy") == "Always"
