"""Reads the annotation in which a webhook writes a pod's requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.app.requests.declared_requests import DeclaredRequests
from nri_resmgr.app.requests.resource_requirements import (
    Misplaced,
    mapping,
    requests_of,
)
from nri_resmgr.log import Logger
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Pod
from nri_resmgr.values import InputError

log = Logger(__name__)

_CONTAINERS: Final = "containers"
_INIT: Final = "initContainers"
_POD: Final = "pod"

# Characters: enough for a hundred containers, which take a few milliseconds to read.
_MAX_TEXT: Final = 32 << 10

_SHOWN: Final = 200  # characters of a place, whose names are not validated


@dataclass(eq=False)
class BadResources(InputError):
    """A pod's annotation of resources cannot be read.

    Attributes:
        pod: ``namespace/name``.
        key: The annotation's.
        at: Place in it, ``containers.web.requests.cpu``; empty for all of it.
        why: What is wrong, and what would be accepted.
    """

    pod: str
    key: str
    at: str
    why: str

    def __str__(self) -> str:
        place = f" at {self.at}" if self.at else ""
        return f"pod {self.pod}, annotation {self.key}{place}: {self.why}"


def read_or_warn(pod: Pod, key: str, text: str) -> DeclaredRequests | None:
    """Read a pod's annotation; returns None and logs a warning where that fails."""
    try:
        return read_resources(text)
    except Misplaced as error:
        name = f"{pod.namespace}/{pod.name}"
        bad = BadResources(name, key, error.at[:_SHOWN], error.why)
        log.warning("requests.unreadable", pod=pod.id, error=str(bad), instead="cgroup")
        return None


def read_resources(text: str) -> DeclaredRequests:
    """Read the annotation of a webhook.

    Args:
        text: JSON, ``{"initContainers": {NAME: ResourceRequirements},
            "containers": {NAME: ResourceRequirements}}``. Accepted as well: "pod" with
            the pod's own ResourceRequirements, and ``"restartPolicy": "Always"`` in
            those of a sidecar. Other keys are ignored.

    Raises:
        Misplaced: It is something else, or too long.
    """
    if len(text) > _MAX_TEXT:
        raise Misplaced("", f"{len(text)} characters, expected at most {_MAX_TEXT}")
    try:
        # Amounts may be numbers: they are parsed as quantities, from their text.
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    # Recursion: thousands of nested brackets.
    except (ValueError, RecursionError) as error:
        raise Misplaced("", f"not JSON: {error}") from None
    content = mapping(document, "")
    pod = requests_of(content[_POD], _POD) if _POD in content else None
    containers = mapping(content.get(_CONTAINERS), _CONTAINERS)
    init = mapping(content.get(_INIT), _INIT)
    return DeclaredRequests(
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
