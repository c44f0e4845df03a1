"""The annotation that a webhook writes, read."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from nri_resmgr.app.requests.errors import BadResources
from nri_resmgr.app.requests.pod_requests import PodRequests
from nri_resmgr.app.requests.resource_requirements import (
    Misplaced,
    mapping,
    requests_of,
)
from nri_resmgr.log import Logger
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Pod

log = Logger(__name__)

_CONTAINERS: Final = "containers"
_INIT: Final = "initContainers"
_POD: Final = "pod"

# Room for a hundred containers, whose reading takes a few milliseconds.
_MAX_TEXT: Final = 32 << 10

_SHOWN: Final = 200  # characters of a place, which has names that nobody checked


def read_or_warn(pod: Pod, key: str, text: str) -> PodRequests | None:
    """Read a pod's annotation; None, and a warning, where that cannot be done."""
    try:
        return read_resources(text)
    except Misplaced as error:
        name = f"{pod.namespace}/{pod.name}"
        bad = BadResources(name, key, error.at[:_SHOWN], error.why)
        log.warning("requests.unreadable", pod=pod.id, error=str(bad), instead="cgroup")
        return None


def read_resources(text: str) -> PodRequests:
    """Read the annotation of a webhook.

    Args:
        text: JSON, ``{"initContainers": {NAME: ResourceRequirements},
            "containers": {NAME: ResourceRequirements}}``. We also take a "pod" with
            the pod's own, and ``"restartPolicy": "Always"`` in what belongs to a
            sidecar. Other keys say nothing.

    Raises:
        Misplaced: It is something else, or too long.
    """
    if len(text) > _MAX_TEXT:
        raise Misplaced("", f"{len(text)} characters, expected at most {_MAX_TEXT}")
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


def _of_pod(requests: Requests, pod: Requests | None) -> Requests:
    # The kubelet gives a container without limits those of its pod.
    if pod is None:
        return requests
    return msgspec.structs.replace(
        requests,
        cpu_limit=requests.cpu_limit or pod.cpu_limit,
        memory_limit=requests.memory_limit or pod.memory_limit,
    )


def _always(content: object) -> bool:
    return isinstance(content, dict) and content.get("restartPolicy") == "Always"
