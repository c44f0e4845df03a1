"""Reads a pod's annotations for one of its containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.app.annotations.errors import BadAnnotation
from nri_resmgr.app.annotations.reading import (
    CRI_O,
    CRI_RM,
    KUBERNETES,
    NATIVE,
    Reading,
)

_NOTHING: Final = Reading()
_NAME_SPACES: Final = (NATIVE, CRI_RM, KUBERNETES, CRI_O)


def read_preferences(
    annotations: Mapping[str, str],
    container: str,
    *,
    pod: str = "",
    testing: bool = False,
    refuse: bool = True,
) -> Reading:
    """Read the meaning of a pod's annotations for one of its containers.

    Args:
        annotations: Of the pod.
        container: The container's name in the pod.
        pod: ``namespace/name``, for messages.
        testing: Whether tests may provide topology hints.
        refuse: Whether the container can be refused; a running one cannot.

    Raises:
        BadAnnotation: The value of a strict key is not accepted, and the container
            can be refused.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md; CRI Resource
        Manager, docs/policy/topology-aware.md.
    """
    keys = "\n".join(annotations)  # one search instead of one for each key
    if (
        NATIVE not in keys
        and CRI_RM not in keys
        and KUBERNETES not in keys
        and CRI_O not in keys
    ):
        return _NOTHING
    # Late: on the start path, and most pods have no such key.
    from nri_resmgr.app.annotations.interpret import interpret

    reading = interpret(_ours(annotations), container, testing=testing)
    for one in reading.problems:
        if one.strict and refuse:
            raise BadAnnotation(pod, container, one.key, one.value, one.why)
    return reading


def _ours(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = [key for key in annotations if any(space in key for space in _NAME_SPACES)]
    return tuple([(key, annotations[key]) for key in sorted(found)])
