"""Reads a pod's annotations for one of its containers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions
from nri_resmgr.values.annotations import BadAnnotation

NATIVE: Final = "resource-policy.nri.io"
CRI_RM: Final = "cri-resource-manager.intel.com"
KUBERNETES: Final = "resources.beta.kubernetes.io"
"""Only of classes, which the runtimes themselves read as well."""
CRI_O: Final = "crio.io"
"""Only of isolation; all other keys are for CRI-O itself."""


class Refused(Enum):
    """Mistakes in strict annotations that refuse a container."""

    ALL = "all"
    FOR_DAEMON = "for the daemon"
    """Not those for the policy: the one in force refuses no container."""
    NONE = "none"
    """The container runs already."""


class AnnotationProblem(msgspec.Struct, frozen=True):
    """An annotation that has no effect, or not the one that its author may expect.

    Attributes:
        why: What is wrong, and what would be accepted.
        strict: Whether the container is to be refused for it.
        of_policy: Whether it is strict, and for the policy, not for the daemon itself.
        read: Whether it has its effect, though its value is spelled unusually.
    """

    key: str
    value: str
    why: str
    strict: bool = False
    of_policy: bool = False
    read: bool = False


class Reading(msgspec.Struct, frozen=True):
    """The meaning of a pod's annotations for one of its containers.

    Attributes:
        preferences: For the policy.
        hints: Which topology hints are used.
        problems: To be logged; the container is placed without these annotations.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: HintOptions = ALL_HINTS
    problems: tuple[AnnotationProblem, ...] = ()


_NOTHING: Final = Reading()


def read_preferences(
    annotations: Mapping[str, str],
    container: str,
    *,
    pod: str = "",
    testing: bool = False,
    refuse: Refused = Refused.ALL,
) -> Reading:
    """Read the meaning of a pod's annotations for one of its containers.

    Args:
        annotations: Of the pod.
        container: The container's name in the pod.
        pod: ``namespace/name``, for messages.
        testing: Whether tests may provide topology hints.
        refuse: Which mistakes refuse the container.

    Raises:
        BadAnnotation: The value of a strict key is not accepted, and that refuses the
            container.

    Source:
        nri-plugins, docs/resource-policy/policy/topology-aware.md; CRI Resource
        Manager, docs/policy/topology-aware.md.
    """
    keys = "\n".join(annotations)  # one search instead of one for each key
    if not is_read(keys):
        return _NOTHING
    # Late: on the start path, and most pods have no such key.
    from nri_resmgr.app.annotations.interpret import interpret

    reading = interpret(_ours(annotations), container, testing=testing)
    for one in reading.problems:
        is_refused = refuse is Refused.ALL or (
            refuse is Refused.FOR_DAEMON and not one.of_policy
        )
        if one.strict and is_refused:
            raise BadAnnotation(pod, container, one.key, one.value, one.why)
    return reading


def is_read(key: str) -> bool:
    """Return whether annotations with this key become preferences."""
    # Written out: it is on the request path.
    return NATIVE in key or CRI_RM in key or KUBERNETES in key or CRI_O in key


def _ours(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = [key for key in annotations if is_read(key)]
    return tuple([(key, annotations[key]) for key in sorted(found)])
