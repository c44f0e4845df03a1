"""The overhead of pods (``spec.overhead``, that of their RuntimeClass) as reported."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nri_resmgr.app.annotations.queryable import queryable
from nri_resmgr.policy.events import (
    ContainerSpec,
    PodOverhead,
    RequestOrigin,
)
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.requests import limited_cpus, requested_cpus
from nri_resmgr.stub.model import LinuxResources, Pod
from nri_resmgr.values import Bytes, MilliCpus, QosClass


def reported_overhead(pod: Pod) -> LinuxResources | None:
    """Return the overhead that a pod was created with; None for none."""
    resources = pod.linux.pod_overhead if pod.linux else None
    return resources if resources and is_overhead(resources) else None


def is_overhead(resources: LinuxResources) -> bool:
    """Return whether cgroup values specify anything: 0 does not."""
    return any(_amounts(resources))


def overhead_of(
    pod: Pod, resources: LinuxResources, preferences: Preferences
) -> ContainerSpec:
    """Return the overhead of a pod as something that shares CPUs.

    Args:
        pod: The pod.
        resources: Its overhead as cgroup values; 0 is not specified.
        preferences: Those that the annotations have for the whole pod.
    """
    request, size = _amounts(resources)
    return ContainerSpec(
        id="",
        pod=pod.id,
        title=f"{pod.namespace or '?'}/{pod.name or '?'}/{OVERHEAD_NAME}",
        namespace=pod.namespace,
        # It may be bound to no CPU of its own: whole CPUs of it are shared, too.
        qos=QosClass.BURSTABLE,
        request=request,
        limit=request or None,
        memory_request=size,
        memory_limit=size or None,
        name=OVERHEAD_NAME,
        pod_name=pod.name,
        pod_uid=pod.uid,
        pod_labels=queryable(pod.labels),
        pod_tags=queryable(pod.annotations),
        preferences=preferences,
        source=RequestOrigin.OVERHEAD,
    )


def _amounts(resources: LinuxResources) -> tuple[MilliCpus, Bytes]:
    """Return the CPU and memory of an overhead, whose limits equal its requests.

    Source:
        Kubernetes, ``convertOverheadToLinuxResources``: the sums of the containers
        (``pod_resources``) are without it.
    """
    cpu, memory = resources.cpu, resources.memory
    request = MilliCpus(0)
    if cpu is not None:
        request = requested_cpus(cpu.shares, limited_cpus(cpu.quota, cpu.period))
    size = (memory.limit or 0) if memory else 0
    return request, Bytes(max(size, 0))


class PodOverheads:
    """The overheads of present pods, for policies that come later."""

    def __init__(self) -> None:
        self._known: dict[str, ContainerSpec] = {}

    def __contains__(self, pod: str) -> bool:
        return pod in self._known

    def note(self, pod: str, spec: ContainerSpec | None) -> None:
        """Note the overhead of a pod; None for none."""
        if spec is None:
            self._known.pop(pod, None)
        else:
            self._known[pod] = spec

    def keep_only(self, pods: Collection[str]) -> None:
        """Forget all other pods."""
        for gone in self._known.keys() - set(pods):
            del self._known[gone]

    def events(self) -> Iterator[PodOverhead]:
        """Yield the overheads as events, which repeat what is accounted already."""
        for pod, spec in self._known.items():
            yield PodOverhead(pod, spec)
