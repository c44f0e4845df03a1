"""The result of reading a pod's annotations, and the name spaces of their keys."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions

NATIVE: Final = "resource-policy.nri.io"
CRI_RM: Final = "cri-resource-manager.intel.com"
KUBERNETES: Final = "resources.beta.kubernetes.io"
"""Only of classes, which the runtimes themselves read as well."""
CRI_O: Final = "crio.io"
"""Only of isolation; all other keys are for CRI-O itself."""


class AnnotationProblem(msgspec.Struct, frozen=True):
    """An annotation that has no effect, or not the one that its author may expect.

    Attributes:
        key: As it is written in the pod.
        value: As it is written in the pod.
        why: What is wrong, and what would be accepted.
        strict: Whether the container is to be refused for it.
        pending: Whether it is valid, and only not implemented yet.
    """

    key: str
    value: str
    why: str
    strict: bool = False
    pending: bool = False


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
