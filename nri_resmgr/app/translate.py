"""Stub values to the policy's, and its answers back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.requests import (
    limited_cpus,
    qos_of_cgroup,
    qos_of_values,
    requested_cpus,
)
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, ContainerState, LinuxResources, Pod
from nri_resmgr.stub.model.resources import LinuxCpu, LinuxMemory
from nri_resmgr.stub.resource_setters import ResourceSetters
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

_Setters = TypeVar("_Setters", bound=ResourceSetters)


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
    cpu = (wanted and wanted.cpu) or LinuxCpu()
    memory = (wanted and wanted.memory) or LinuxMemory()
    limit = limited_cpus(
        cpu.quota or container.cpu.quota, cpu.period or container.cpu.period
    )
    request = requested_cpus(cpu.shares or container.cpu.shares, limit)
    bytes_ = memory.limit or container.memory.limit
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
        present=_present(container),
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
    return _pinned(ContainerAdjustment(), pin) if pin else None


def updates_of(updates: Sequence[PinUpdate]) -> tuple[ContainerUpdate, ...]:
    """Pin containers that exist; those with the same news share the content."""
    news: dict[Pin, ContainerUpdate] = {}
    for update in updates:
        if update.pin not in news:
            news[update.pin] = _pinned(ContainerUpdate(), update.pin)
    return tuple(ContainerUpdate(one.container, news[one.pin].linux) for one in updates)


def _pinned(reply: _Setters, pin: Pin) -> _Setters:
    if pin.cpus:
        reply = reply.set_cpus(str(pin.cpus))
    if pin.mems:
        reply = reply.set_mems(str(pin.mems))
    return reply


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


def _present(container: Container) -> Pin:
    try:
        return Pin(
            cpus=CpuSet.parse(container.cpu.cpus),
            mems=NodeSet.parse(container.cpu.mems),
        )
    except BadListFormat:
        # Whatever it is, it is not one of ours, and it is about to be replaced.
        return Pin()
