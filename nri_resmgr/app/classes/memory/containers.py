"""Running containers with memory classes, for metrics and `status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.memory import (
    BadMemoryAnnotation,
    memory_qos_request,
    numa_policy_request,
)
from nri_resmgr.policy.events import ContainerSpec

QOS: Final = "memory-qos"
POLICY: Final = "memory-policy"


class MemoryOwner(msgspec.Struct, frozen=True):
    """A container in a class.

    Attributes:
        kind: ``memory-qos`` or ``memory-policy``.
    """

    kind: str
    name: str
    title: str


def memory_owners(subject: PolicyInForce) -> Iterator[MemoryOwner]:
    """Yield all containers with a memory class that the configuration defines."""
    config = subject.config
    qos = config.memory_qos.classes if config.memory_qos else {}
    policies = config.memory_policy.classes if config.memory_policy else {}
    if not qos and not policies:
        return
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        for kind, name, known in (
            (QOS, memory_qos_request(spec.pod_tags, spec.name).class_name, qos),
            (POLICY, _policy_class(spec), policies),
        ):
            if name in known:
                yield MemoryOwner(kind, name, spec.title)


def _policy_class(spec: ContainerSpec) -> str:
    try:
        request = numa_policy_request(spec.pod_tags, spec.name)
    except BadMemoryAnnotation:
        return ""  # it was created before this daemon could refuse it
    return request.class_name if request else ""
