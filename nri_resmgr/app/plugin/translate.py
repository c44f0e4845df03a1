"""Stub values to the policy's, and its answers back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.app.annotations.queryable import queryable
from nri_resmgr.app.plugin.unread_texts import UnreadTexts
from nri_resmgr.app.requests import RequestSources, cgroup_values
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.policy.reconstruct import CgroupValues
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
    LinuxResources,
    Mount,
    Pod,
)
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import BadListFormat, CpuSet, NodeSet, QosClass

# Set by the kubelet on every container that it makes, and by nobody else.
KUBELET_NAME: Final = "io.kubernetes.container.name"

_SHORT_ID: Final = 13  # as crictl prints ids


class KnownContainer(msgspec.Struct, frozen=True):
    """What others know of a container.

    Attributes:
        preferences: What its pod's annotations ask for.
        hints: Where the things that it uses sit.
        known: As it was before; None for a new one, or where nothing is remembered.
        ours: What we told of it last, if it may have been resized since.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: tuple[Hint, ...] = ()
    known: ContainerSpec | None = None
    ours: Pin | None = None

    # Not every event tells these two.

    @property
    def cgroup(self) -> str:
        """Its cgroup as it was told before; empty where it was not."""
        return self.known.cgroup if self.known else ""

    @property
    def pid(self) -> int:
        """Its process as it was told before; 0 where it was not."""
        return self.known.pid if self.known else 0

    def values_of(
        self, container: Container, wanted: LinuxResources | None
    ) -> CgroupValues:
        """Tell its requests from what the runtime says; see `cgroup_values`."""
        return cgroup_values(container, wanted, self.known, self.ours)


NO_BACKGROUND: Final = KnownContainer()
CGROUPS_ALONE: Final = RequestSources()  # without sources it remembers nothing


def spec_of(
    pod: Pod,
    container: Container,
    wanted: LinuxResources | None = None,
    *,
    requests: RequestSources = CGROUPS_ALONE,
    background: KnownContainer = NO_BACKGROUND,
) -> ContainerSpec:
    """Say what policies need to know of a container.

    Args:
        pod: Its pod; an empty one where the runtime does not know it any more.
        container: As it is, or as it is about to be created.
        wanted: What an update asks for; what it leaves out, or gives as 0, stays
            as it is.
        requests: Who knows what it asks for.
        background: What else is known.
    """
    slot, values = _slot(container), background.values_of(container, wanted)
    name, qos = container.name or slot, _qos(pod, container, values)
    asked = requests.requests_of(pod, name, values, qos)
    return ContainerSpec(
        id=container.id,
        pod=container.pod_sandbox_id or pod.id,
        title=_title(pod, name or container.id[:_SHORT_ID]),
        slot=slot,
        namespace=pod.namespace,
        qos=qos,
        request=asked.cpu,
        limit=asked.cpu_limit,
        memory_limit=asked.memory_limit,
        created=container.created_at,
        present=_present(container),
        memory_request=asked.memory,
        hugepages=asked.hugepages,
        name=name,
        pod_name=pod.name,
        pod_uid=pod.uid,
        labels=UnreadTexts(lambda: container.labels),
        tags=UnreadTexts(lambda: queryable(container.annotations)),
        pod_labels=UnreadTexts(lambda: queryable(pod.labels)),
        pod_tags=UnreadTexts(lambda: queryable(pod.annotations)),
        preferences=background.preferences,
        hints=background.hints,
        source=asked.source,
        started=container.started_at,
        extended=asked.extended,
        cgroup=_cgroup(container) or background.cgroup,
        pid=container.pid or background.pid,
    )


def expected_specs(
    pod: Pod,
    requests: RequestSources,
    preferences_of: Callable[[str], Preferences] = lambda _name: NO_PREFERENCES,
) -> tuple[ContainerSpec, ...]:
    """Say what policies need to know of containers that a new pod will have.

    Args:
        pod: Whose containers do not exist yet.
        requests: Who knows what they will ask for.
        preferences_of: What the pod's annotations ask for, by a container's name.

    Returns:
        Those that will run at the same time, without ids; empty where nobody knows.
    """
    qos = qos_of_cgroup(pod.linux.cgroup_parent if pod.linux else "")
    return tuple(
        ContainerSpec(
            id="",
            pod=pod.id,
            title=_title(pod, name),
            namespace=pod.namespace,
            qos=qos or qos_of_values(asked.cpu, asked.cpu_limit, asked.memory_limit),
            request=asked.cpu,
            limit=asked.cpu_limit,
            memory_limit=asked.memory_limit,
            memory_request=asked.memory,
            hugepages=asked.hugepages,
            name=name,
            pod_name=pod.name,
            pod_uid=pod.uid,
            pod_labels=queryable(pod.labels),
            pod_tags=queryable(pod.annotations),
            preferences=preferences_of(name),
            source=asked.source,
            extended=asked.extended,
        )
        for name, asked in requests.expected(pod).items()
    )


def living_specs(
    pods: Iterable[Pod],
    containers: Iterable[Container],
    requests: RequestSources = CGROUPS_ALONE,
    background_of: Callable[[Pod, Container], KnownContainer] = lambda *_: (
        NO_BACKGROUND
    ),
) -> tuple[ContainerSpec, ...]:
    """Say what policies need to know of all containers that have not stopped."""
    by_id: Mapping[str, Pod] = {pod.id: pod for pod in pods}
    living = (
        (by_id.get(one.pod_sandbox_id) or Pod(id=one.pod_sandbox_id), one)
        for one in containers
        if one.state != ContainerState.STOPPED
    )
    return tuple(
        spec_of(pod, one, requests=requests, background=background_of(pod, one))
        for pod, one in living
    )


def adjustment_of(pin: Pin, *mounts: Mount) -> ContainerAdjustment | None:
    """Pin a container at its creation; None where there is nothing to say.

    Args:
        pin: Where it may run and have its memory.
        mounts: What it finds beside its own.
    """
    if not pin:
        return ContainerAdjustment(mounts=mounts) if mounts else None
    linux = _of_creation(pin.cpus.bits, pin.mems.bits, pin.shares)
    return ContainerAdjustment(mounts=mounts, linux=linux)


def updates_of(updates: Sequence[PinUpdate]) -> tuple[ContainerUpdate, ...]:
    """Pin containers that exist; those with the same news share the content."""
    if not updates:
        return ()
    return tuple(
        [
            ContainerUpdate(
                one.container,
                _of_update(one.pin.cpus.bits, one.pin.mems.bits, one.pin.shares),
            )
            for one in updates
        ]
    )


# Nearly every reply has the pin of a shared pool. As masks, which are hashed at once.
@lru_cache(maxsize=256)
def _resources(cpus: int, mems: int, shares: int) -> LinuxResources:
    # What is empty is not sent.
    found = LinuxCpu(
        cpus=str(CpuSet(cpus)), mems=str(NodeSet(mems)), shares=shares or None
    )
    return LinuxResources(cpu=found)


@lru_cache(maxsize=256)
def _of_update(cpus: int, mems: int, shares: int) -> LinuxContainerUpdate:
    return LinuxContainerUpdate(_resources(cpus, mems, shares))


@lru_cache(maxsize=256)
def _of_creation(cpus: int, mems: int, shares: int) -> LinuxContainerAdjustment:
    return LinuxContainerAdjustment(resources=_resources(cpus, mems, shares))


def _title(pod: Pod, name: str) -> str:
    return f"{pod.namespace or '?'}/{pod.name or '?'}/{name}"


def _cgroup(container: Container) -> str:
    return container.linux.cgroups_path if container.linux else ""


def _slot(container: Container) -> str:
    return container.labels.get(KUBELET_NAME) or container.annotations.get(
        KUBELET_NAME, ""
    )


def _qos(pod: Pod, container: Container, values: CgroupValues) -> QosClass:
    parent = pod.linux.cgroup_parent if pod.linux else ""
    if qos := qos_of_cgroup(parent):
        return qos
    if qos := qos_of_cgroup(_cgroup(container)):
        return qos
    limit = limited_cpus(values.quota, values.period)
    request = requested_cpus(values.shares, limit)
    return qos_of_values(request, limit, values.memory_limit)


def _present(container: Container) -> Pin:
    linux = container.linux
    cpu = linux and linux.resources and linux.resources.cpu
    if not cpu:
        return NO_PIN
    shares = cpu.shares or 0
    try:
        return _pin_of(cpu.cpus, cpu.mems, shares)
    except BadListFormat:
        # Whatever it is, it is not one of ours, and it is about to be replaced.
        return Pin(shares=shares)


@lru_cache(maxsize=1024)
def _pin_of(cpus: str, mems: str, shares: int) -> Pin:
    # Many containers have the same, and most new ones nothing but shares.
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems), shares)
