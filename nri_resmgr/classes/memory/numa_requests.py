"""Which NUMA policy a pod's annotations ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.memory.errors import BadMemoryAnnotation, UnknownMemoryClass
from nri_resmgr.classes.memory.numa_values import NumaPolicy
from nri_resmgr.classes.memory.scopes import ScopedAnnotation, by_scope
from nri_resmgr.values import InputError

CLASS_KEY: Final = "class.memory-policy.nri.io"
"""Annotation that names a class. Narrower scopes count: ``/container.NAME``, ``/pod``,
nothing. An empty value takes away what a wider scope asks for."""

POLICY_KEY: Final = "policy.memory-policy.nri.io"
"""Annotation that is a policy itself, as YAML, in the same scopes."""


class NumaPolicyRequest(msgspec.Struct, frozen=True):
    """What annotations ask for a container.

    Attributes:
        class_name: A class; empty for none.
        policy: A policy as YAML; None for none.
    """

    class_name: str = ""
    policy: ScopedAnnotation | None = None


def numa_policy_request(
    annotations: Mapping[str, str], container: str
) -> NumaPolicyRequest | None:
    """Read what a pod's annotations ask for one of its containers.

    Returns:
        None where they ask for nothing, or take away what a wider scope asks for.

    Raises:
        BadMemoryAnnotation: A scope names a class and has a policy as well.

    Source:
        nri-plugins, ``cmd/plugins/memory-policy``.
    """
    scopes = by_scope(annotations, (CLASS_KEY, POLICY_KEY), container)
    if not scopes:
        return None
    if len(scopes[0]) > 1:
        one, other = scopes[0]
        raise BadMemoryAnnotation(
            one.key, one.value, f"goes without {other.key}: one of both has to go"
        )
    spoken = scopes[0][0]
    if not spoken.value.strip():
        return None
    if spoken.key.startswith(CLASS_KEY):
        return NumaPolicyRequest(spoken.value)
    return NumaPolicyRequest(policy=spoken)


def chosen_numa_policy(
    request: NumaPolicyRequest,
    classes: Mapping[str, NumaPolicy],
    read: Callable[[str], NumaPolicy],
    title: str,
) -> NumaPolicy:
    """Find the policy that a request is for.

    Args:
        request: What is asked for.
        classes: Those that there are.
        read: Reads YAML: `parse_numa_policy` of `nri_resmgr.config.memory_classes`.
        title: The container, for people.

    Raises:
        UnknownMemoryClass: The class is not there.
        BadMemoryAnnotation: The policy is none.
    """
    if request.policy is not None:
        try:
            return read(request.policy.value)
        except InputError as error:
            why = f"is no memory policy: {error}"
            raise BadMemoryAnnotation(
                request.policy.key, request.policy.value, why
            ) from None
    found = classes.get(request.class_name)
    if found is None:
        name = request.class_name
        raise UnknownMemoryClass(title, "memory policy", name, tuple(classes))
    return found
