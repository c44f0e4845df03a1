"""Stub values to the policy's, and its answers back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.requests import (
    limited_cpus,
    qos_of_cgroup,
    qos_of_values,
    requested_cpus,
)
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import (
    Container,
    ContainerState,
    LinuxContainerAdjustment,
    LinuxContainerUpdate,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values import (
    BadListFormat,
    Bytes,
    CpuSet,
    MilliCpus,
    NodeSet,
    QosClass,
)

# Set by the kubelet on every container that it makes, and by nobody else.
KUBELET_NAME: Final = "io.kubernetes.container.name"

_SHORT_ID: Final = 13  # as crictl prints ids

_NO_CPU: Final = LinuxCpu()
_NO_MEMORY: Final = LinuxMemory()


def spec_of(
    pod: Pod, container: Container, wanted: LinuxResources | None = None
) -> ContainerSpec:
    """Say what policies need to know of a container.

    Args:
        pod: Its pod; an empty one where the runtime does not know it any more.
        container: As it is, or as it is about to be created.
        wanted: What an update asks for; what it leaves out, or gives as 0, stays
            as it is.
    """
    has = container.resources
    cpu, memory = has.cpu or _NO_CPU, has.memory or _NO_MEMORY
    new_cpu = (wanted and wanted.cpu) or _NO_CPU
    new_memory = (wanted and wanted.memory) or _NO_MEMORY
    limit = limited_cpus(new_cpu.quota or cpu.quota, new_cpu.period or cpu.period)
    request = requested_cpus(new_cpu.shares or cpu.shares, limit)
    bytes_ = new_memory.limit or memory.limit
    return ContainerSpec(
        id=container.id,
        pod=container.pod_sandbox_id or pod.id,
        title=_title(pod, container),
        slot=_slot(container),
        namespace=pod.namespace,
        qos=_qos(pod, container, (request, limit, bytes_)),
        request=request,
        limit=limit,
        memory_limit=Bytes(bytes_) if bytes_ and bytes_ > 0 else None,
        created=container.created_at,
        present=_present(cpu),
    )


def living_specs(
    pods: Iterable[Pod], containers: Iterable[Container]
) -> tuple[ContainerSpec, ...]:
    """Say what policies need to know of all containers that have not stopped."""
    by_id: Mapping[str, Pod] = {pod.id: pod for pod in pods}
    return tuple(
        spec_of(by_id.get(one.pod_sandbox_id, Pod(id=one.pod_sandbox_id)), one)
        for one in containers
        if one.state != ContainerState.STOPPED
    )


def adjustment_of(pin: Pin) -> ContainerAdjustment | None:
    """Pin a container at its creation; None where there is nothing to say."""
    if not pin:
        return None
    return ContainerAdjustment(
        linux=LinuxContainerAdjustment(resources=_resources(pin))
    )


def updates_of(updates: Sequence[PinUpdate]) -> tuple[ContainerUpdate, ...]:
    """Pin containers that exist; those with the same news share the content."""
    news: dict[Pin, LinuxContainerUpdate] = {}
    for update in updates:
        if update.pin not in news:
            news[update.pin] = LinuxContainerUpdate(_resources(update.pin))
    return tuple(ContainerUpdate(one.container, news[one.pin]) for one in updates)


@lru_cache(maxsize=256)
def _resources(pin: Pin) -> LinuxResources:
    # The shared pool's comes back with nearly every request.
    cpu = LinuxCpu(cpus=str(pin.cpus), mems=str(pin.mems), shares=pin.shares or None)
    return LinuxResources(cpu=cpu)


def _title(pod: Pod, container: Container) -> str:
    name = container.name or container.id[:_SHORT_ID]
    return f"{pod.namespace or '?'}/{pod.name or '?'}/{name}"


def _slot(container: Container) -> str:
    return container.labels.get(KUBELET_NAME) or container.annotations.get(
        KUBELET_NAME, ""
    )


def _qos(
    pod: Pod,
    container: Container,
    values: tuple[MilliCpus, MilliCpus | None, int | None],
) -> QosClass:
    parent = pod.linux.cgroup_parent if pod.linux else ""
    own = container.linux.cgroups_path if container.linux else ""
    return qos_of_cgroup(parent) or qos_of_cgroup(own) or qos_of_values(*values)


def _present(cpu: LinuxCpu) -> Pin:
    if not (cpu.cpus or cpu.mems):
        return NO_PIN
    try:
        return Pin(cpus=CpuSet.parse(cpu.cpus), mems=NodeSet.parse(cpu.mems))
    except BadListFormat:
        # Whatever it is, it is not one of ours, and it is about to be replaced.
        return NO_PIN
