"""A pod's annotations to what one of its containers prefers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.app.annotations.errors import BadAnnotation
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions

NATIVE: Final = "resource-policy.nri.io"
CRI_RM: Final = "cri-resource-manager.intel.com"
KUBERNETES: Final = "resources.beta.kubernetes.io"
"""Of classes only, which the runtimes themselves know, too."""
CRI_O: Final = "crio.io"
"""Of isolation only; the rest of it is CRI-O's alone."""


class Problem(msgspec.Struct, frozen=True):
    """An annotation that does not count, or not as its author may think.

    Attributes:
        key: As it is written in the pod.
        value: As it is written in the pod.
        why: What is wrong, and what would be accepted.
        strict: Whether the container is to be refused for it.
        pending: Whether nothing is wrong but that it has no effect yet.
    """

    key: str
    value: str
    why: str
    strict: bool = False
    pending: bool = False


class Reading(msgspec.Struct, frozen=True):
    """What the annotations of a pod say to one container.

    Attributes:
        preferences: For the policy.
        hints: For those who look for topology hints.
        problems: For people; the container is placed as if those did not stand there.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: HintOptions = ALL_HINTS
    problems: tuple[Problem, ...] = ()


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
    """Read what a pod's annotations say to one of its containers.

    Args:
        annotations: Of the pod.
        container: The container's name in the pod.
        pod: ``namespace/name``, for people.
        testing: Whether tests may hand in topology hints.
        refuse: Whether the container can be refused; one that runs cannot.

    Raises:
        BadAnnotation: One that must not be misread means nothing, and the container
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
    from nri_resmgr.app.annotations.interpret import interpret  # most pods have none

    reading = interpret(_ours(annotations), container, testing=testing)
    for one in reading.problems:
        if one.strict and refuse:
            raise BadAnnotation(pod, container, one.key, one.value, one.why)
    return reading


def _ours(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = [key for key in annotations if any(space in key for space in _NAME_SPACES)]
    return tuple([(key, annotations[key]) for key in sorted(found)])
