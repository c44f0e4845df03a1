"""NUMA policies that annotations of pods ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.memory.errors import BadMemoryAnnotation, UnknownMemoryClass
from nri_resmgr.classes.memory.numa_values import NumaPolicy
from nri_resmgr.classes.memory.scopes import ScopedAnnotation, by_scope
from nri_resmgr.values import InputError

CLASS_KEY: Final = "class.memory-policy.nri.io"
"""Annotation that names a class; the narrowest scope applies: ``/container.NAME``,
``/pod``, no suffix. An empty value cancels the request of a wider scope."""

POLICY_KEY: Final = "policy.memory-policy.nri.io"
"""Annotation with a policy itself, as YAML, in the same scopes."""


class NumaPolicyRequest(msgspec.Struct, frozen=True):
    """The request of annotations for a container: a class or a policy.

    Attributes:
        class_name: Name of the class; empty for none.
        policy: The annotation with a policy; None for none.
    """

    class_name: str = ""
    policy: ScopedAnnotation | None = None


def numa_policy_request(
    annotations: Mapping[str, str], container: str
) -> NumaPolicyRequest | None:
    """Read the request of a pod's annotations for one of its containers.

    Returns:
        None for no request, or for a cancelled one.

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
            one.key,
            one.value,
            f"cannot be combined with {other.key}: remove one of them",
        )
    annotation = scopes[0][0]
    if not annotation.value.strip():
        return None
    if annotation.key.startswith(CLASS_KEY):
        return NumaPolicyRequest(annotation.value)
    return NumaPolicyRequest(policy=annotation)


def chosen_numa_policy(
    request: NumaPolicyRequest,
    classes: Mapping[str, NumaPolicy],
    read: Callable[[str], NumaPolicy],
    title: str,
) -> NumaPolicy:
    """Return the policy that a request asks for.

    Args:
        request: The request.
        classes: The configured classes.
        read: Reads YAML: `parse_numa_policy` of `nri_resmgr.config.memory_classes`.
        title: The container, for messages.

    Raises:
        UnknownMemoryClass: The class does not exist.
        BadMemoryAnnotation: The policy is invalid.
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
