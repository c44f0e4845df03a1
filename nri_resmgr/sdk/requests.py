"""Amounts that the kubelet asked for: requests and limits of a container.

A runtime knows cgroup values only. This reads what they were made of, as the daemon
does (docs/requests.md): an annotation with exact requests wins as long as the cgroup
values do not contradict it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from nri_resmgr.app.requests import (
    AnnotationSource,
    RequestSources,
    cgroup_values,
    qos_of,
)
from nri_resmgr.host.fields import memory_total
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.values import Bytes, QosClass

__all__ = ["RequestOrigin", "Requests", "qos_class", "requests_of"]

_annotations: Final = AnnotationSource()


def requests_of(
    pod: Pod,
    container: Container,
    resources: LinuxResources | None = None,
    *,
    memory_of_node: Bytes | None = None,
) -> Requests:
    """Return the requests and limits of a container, with their source.

    CPU amounts and limits are exact. The memory request of a Burstable container
    follows from its OOM score, which gives it to a thousandth of the node's memory; an
    annotation has it exactly. Where an earlier plugin, or this one, has changed the
    values of the container, the amounts are what the changed values stand for.

    Args:
        pod: The pod, with its annotations.
        container: As a handler gets it.
        resources: Of ``update_container``: the new values of a resize.
        memory_of_node: Total memory; None is that of this machine.
    """
    values = cgroup_values(container, resources)
    qos = qos_of(pod, container, values)
    capacity = _memory_of_machine() if memory_of_node is None else memory_of_node
    # A new object each time: what it keeps of pods is for callers that see them end.
    sources = RequestSources((_annotations,), capacity=capacity)
    return sources.requests_of(pod, container.name, values, qos)


def qos_class(pod: Pod, container: Container) -> QosClass:
    """Return the QoS class of a pod, by its cgroup or else by a container's values."""
    return qos_of(pod, container, cgroup_values(container))


@cache
def _memory_of_machine() -> Bytes:
    return memory_total(HostTree(), "/proc/meminfo")
