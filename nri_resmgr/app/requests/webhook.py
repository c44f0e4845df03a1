"""Reads the annotation in which a webhook writes a pod's requests."""

from __future__ import annotations

import json
from typing import Final

from nri_resmgr.app.requests.amounts import (
    Misplaced,
    mapping_at,
    read_requests,
    within_pod,
)
from nri_resmgr.app.requests.declared_requests import (
    LONGEST_REQUESTS,
    DeclaredRequests,
)
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests

log = Logger(__name__)

_CONTAINERS: Final = "containers"
_INIT: Final = "initContainers"
_POD: Final = "pod"

_SHOWN_PLACE: Final = 200  # characters; its names are not validated


def read_or_warn(title: str, pod: str, key: str, text: str) -> DeclaredRequests | None:
    """Read a pod's annotation; returns None and logs a warning where that fails."""
    try:
        return read_resources(text)
    except Misplaced as error:
        place = f" at {error.at[:_SHOWN_PLACE]}" if error.at else ""
        name = f"pod {title}, annotation {key}{place}"
        why = f"{name}: {error.why}"
        log.warning("requests.unreadable", pod=pod, error=why, instead="cgroup")
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
    if len(text) > LONGEST_REQUESTS:
        why = f"{len(text)} characters, expected at most {LONGEST_REQUESTS}"
        raise Misplaced("", why)
    try:
        # Amounts may be numbers: they are parsed as quantities, from their text.
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    # Recursion: thousands of nested brackets.
    except (ValueError, RecursionError) as error:
        raise Misplaced("", f"not JSON: {error}") from None
    content = mapping_at(document, "")
    pod = _read(content[_POD], _POD) if _POD in content else None
    containers = mapping_at(content.get(_CONTAINERS), _CONTAINERS)
    init = mapping_at(content.get(_INIT), _INIT)
    return DeclaredRequests(
        containers={
            name: _in_pod(one, f"{_CONTAINERS}.{name}", pod)
            for name, one in containers.items()
        },
        init={name: _in_pod(one, f"{_INIT}.{name}", pod) for name, one in init.items()},
        sidecars=frozenset(name for name, one in init.items() if _always(one)),
        pod=pod,
    )


def _read(content: object, at: str) -> Requests:
    return read_requests(content, at, RequestOrigin.ANNOTATION)


def _in_pod(content: object, at: str, pod: Requests | None) -> Requests:
    return within_pod(_read(content, at), pod)


def _always(content: object) -> bool:
    return isinstance(content, dict) and content.get("restartPolicy") == "Always"
