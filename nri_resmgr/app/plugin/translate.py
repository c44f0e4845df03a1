"""Conversion of containers to `ContainerSpec`s, and of pins to NRI messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.app.annotations.queryable import queryable
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

# Set by the kubelet, and only by it, on every container that it creates.
KUBELET_NAME: Final = "io.kubernetes.container.name"

_SHORT_ID: Final = 13  # as crictl prints ids


class KnownFacts(msgspec.Struct, frozen=True):
    """Facts about a container that its message does not have.

    Attributes:
        preferences: Preferences from its pod's annotations.
        hints: Its topology hints.
        known: Its spec at an earlier event; None for a new container.
        last_sent: The pins last sent to the runtime, if it may have been resized since.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: tuple[Hint, ...] = ()
    known: ContainerSpec | None = None
    last_sent: Pin | None = None

    # Some events leave the cgroup and the process out.

    @property
    def cgroup(self) -> str:
        """Its cgroup in earlier events; empty for none."""
        return self.known.cgroup if self.known else ""

    @property
    def pid(self) -> int:
        """Its process in earlier events; 0 for none."""
        return self.known.pid if self.known else 0

    def values_of(
        self, container: Container, wanted: LinuxResources | None
    ) -> CgroupValues:
        """Return its cgroup values from the runtime's; see `cgroup_values`."""
        return cgroup_values(container, wanted, self.known, self.last_sent)


NO_FACTS: Final = KnownFacts()
CGROUPS_ALONE: Final = RequestSources()  # without sources it keeps no state


def spec_of(
    pod: Pod,
    container: Container,
    wanted: LinuxResources | None = None,
    *,
    requests: RequestSources = CGROUPS_ALONE,
    facts: KnownFacts = NO_FACTS,
) -> ContainerSpec:
    """Make the spec of a container.

    Args:
        pod: Its pod; an empty one where the runtime does not know it any more.
        container: As it is, or as it is about to be created.
        wanted: The values of an update; absent ones, and 0, leave a value unchanged.
        requests: The sources of its resource requests.
        facts: Facts that the message does not have.
    """
    slot, values = _slot(container), facts.values_of(container, wanted)
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
        labels=container.labels,
        tags=queryable(container.annotations),
        pod_labels=queryable(pod.labels),
        pod_tags=queryable(pod.annotations),
        preferences=facts.preferences,
        hints=facts.hints,
        source=asked.source,
        started=container.started_at,
        extended=asked.extended,
        cgroup=_cgroup(container) or facts.cgroup,
        pid=container.pid or facts.pid,
    )


def expected_specs(
    pod: Pod,
    requests: RequestSources,
    preferences_of: Callable[[str], Preferences] = lambda _name: NO_PREFERENCES,
) -> tuple[ContainerSpec, ...]:
    """Make the specs of the containers that a new pod will have.

    Args:
        pod: The pod, still without containers.
        requests: The sources of their resource requests.
        preferences_of: Returns the preferences from annotations by container name.

    Returns:
        Those that will run at the same time, without ids; empty without a source.
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
    facts_of: Callable[[Pod, Container], KnownFacts] = lambda *_: NO_FACTS,
) -> tuple[ContainerSpec, ...]:
    """Make the specs of all containers that have not stopped."""
    by_id: Mapping[str, Pod] = {pod.id: pod for pod in pods}
    living = (
        (by_id.get(one.pod_sandbox_id) or Pod(id=one.pod_sandbox_id), one)
        for one in containers
        if one.state != ContainerState.STOPPED
    )
    return tuple(
        spec_of(pod, one, requests=requests, facts=facts_of(pod, one))
        for pod, one in living
    )


def adjustment_of(pin: Pin, *mounts: Mount) -> ContainerAdjustment | None:
    """Make the adjustment of a new container; None where nothing changes.

    Args:
        pin: Its CPUs, memory nodes and shares.
        mounts: Additional mounts.
    """
    if not pin:
        return ContainerAdjustment(mounts=mounts) if mounts else None
    linux = _of_creation(pin.cpus.bits, pin.mems.bits, pin.shares)
    return ContainerAdjustment(mounts=mounts, linux=linux)


def updates_of(updates: Sequence[PinUpdate]) -> tuple[ContainerUpdate, ...]:
    """Make updates of existing containers; equal pins share the content."""
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


# Cached: nearly every reply has the pin of a shared pool. By masks, which hash fast.
@lru_cache(maxsize=256)
def _resources(cpus: int, mems: int, shares: int) -> LinuxResources:
    # An empty field is not sent and leaves the value as it is.
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
        # Not written by this plugin, and about to be replaced.
        return Pin(shares=shares)


@lru_cache(maxsize=1024)
def _pin_of(cpus: str, mems: str, shares: int) -> Pin:
    # Cached: many containers have the same pin, and most new ones only shares.
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems), shares)
