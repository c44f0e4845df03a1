"""Conversion of containers to `ContainerSpec`s, and of pins to NRI messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.app.adjustments.decided_amounts import Amounts
from nri_resmgr.app.adjustments.override import without_adjustment
from nri_resmgr.app.annotations.queryable import queryable
from nri_resmgr.app.requests import RequestSources, cgroup_values, qos_of
from nri_resmgr.app.requests.declared_requests import DeclaredRequests
from nri_resmgr.app.running.updates import pin_in, resources_of
from nri_resmgr.kubelet.offers import read_devices
from nri_resmgr.policy.claims import PreparedClaim, cpus_of
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.pool_request import NO_POOL_REQUEST, PoolRequest
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.policy.requests import (
    qos_of_cgroup,
    qos_of_values,
)
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import (
    Container,
    ContainerState,
    LinuxContainerAdjustment,
    LinuxResources,
    Mount,
    Pod,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import InputError

# Set by the kubelet, and only by it, on every container that it creates.
KUBELET_NAME: Final = "io.kubernetes.container.name"

_SHORT_ID: Final = 13  # as crictl prints ids


class KnownFacts(msgspec.Struct, frozen=True):
    """Facts about a container that its message does not have.

    Attributes:
        preferences: Preferences from its pod's annotations.
        hints: Its topology hints.
        pool_request: What it asks of static pools.
        claims: The prepared claims that it has.
        known: Its spec at an earlier event, without an adjustment; None for a new
            container.
        last_sent: The pins last sent to the runtime, if it may have been resized since.
        decided: The amounts that the runtime may have, if it is or was adjusted.
    """

    preferences: Preferences = NO_PREFERENCES
    hints: tuple[Hint, ...] = ()
    pool_request: PoolRequest = NO_POOL_REQUEST
    claims: tuple[PreparedClaim, ...] = ()
    known: ContainerSpec | None = None
    last_sent: Pin | None = None
    decided: tuple[Amounts, ...] = ()


NO_FACTS: Final = KnownFacts()
CGROUPS_ALONE: Final = RequestSources()  # without sources it keeps no state


@dataclass(eq=False)
class ContainerWithoutId(InputError):
    """A message of the runtime has a container without an id."""

    title: str

    def __str__(self) -> str:
        return f"{self.title}: the runtime gave the container no id, and must"


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

    Raises:
        ContainerWithoutId: It could never be updated or released.
    """
    if not container.id:
        raise ContainerWithoutId(_title(pod, container.name))
    known, slot = facts.known, _slot(container)
    reported = container
    if known is not None and facts.decided:
        reported = without_adjustment(container, known, facts.decided)
    values = cgroup_values(reported, wanted, known, facts.last_sent)
    name, qos = container.name or slot, qos_of(pod, container, values)
    asked = requests.requests_of(pod, name, values, qos, known)
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
        labels=queryable(container.labels),
        tags=queryable(container.annotations),
        pod_labels=queryable(pod.labels),
        pod_tags=queryable(pod.annotations),
        preferences=facts.preferences,
        hints=facts.hints,
        source=asked.source,
        started=container.started_at,
        # A source of requests knows all of them, the environment those of our devices.
        extended={
            **(known.extended if known else read_devices(container.env)),
            **asked.extended,
        },
        shares_budget=known is not None and known.shares_budget,
        budget=known.budget if known else None,
        # Some events leave the cgroup and the process out.
        cgroup=_cgroup(container) or (known.cgroup if known else ""),
        pid=container.pid or (known.pid if known else 0),
        pool_request=facts.pool_request,
        claims=tuple(one.claim.uid for one in facts.claims),
        claimed=cpus_of(facts.claims),
        priority=_priority(asked, known),
    )


def expected_specs(pod: Pod, declared: DeclaredRequests) -> tuple[ContainerSpec, ...]:
    """Make the specs of the containers that a new pod will have.

    Args:
        pod: The pod, still without containers.
        declared: The requests that it declares for them.

    Returns:
        Those that will run at the same time, without ids and preferences; empty without
        a source.
    """
    labels, tags = queryable(pod.labels), queryable(pod.annotations)
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
            pod_labels=labels,
            pod_tags=tags,
            source=asked.source,
            extended=asked.extended,
            priority=asked.priority,
        )
        for name, asked in declared.lasting.items()
    )


def living_specs(
    pods: Iterable[Pod],
    containers: Iterable[Container],
    requests: RequestSources = CGROUPS_ALONE,
    facts_of: Callable[[Pod, Container], KnownFacts] = lambda *_: NO_FACTS,
) -> tuple[ContainerSpec, ...]:
    """Make the specs of all containers that have not stopped, and have an id.

    Returns:
        Them in the order of *containers*.
    """
    by_id: Mapping[str, Pod] = {pod.id: pod for pod in pods}
    living = [one for one in containers if is_alive(one)]
    specs: dict[int, ContainerSpec] = {}
    # Pod by pod: sources keep what they read of the last few pods only, and runtimes
    # list containers in any order.
    for at in sorted(range(len(living)), key=lambda at: living[at].pod_sandbox_id):
        one = living[at]
        pod = by_id.get(one.pod_sandbox_id) or Pod(id=one.pod_sandbox_id)
        specs[at] = spec_of(pod, one, requests=requests, facts=facts_of(pod, one))
    return tuple(specs[at] for at in range(len(living)))


def is_alive(container: Container) -> bool:
    """Return whether a container of a Synchronize can have a grant."""
    return container.state != ContainerState.STOPPED and bool(container.id)


def adjustment_of(pin: Pin, *mounts: Mount) -> ContainerAdjustment | None:
    """Make the adjustment of a new container; None where nothing changes."""
    if not pin:
        return ContainerAdjustment(mounts=mounts) if mounts else None
    linux = _of_creation(pin.cpus.bits, pin.mems.bits, pin.shares)
    return ContainerAdjustment(mounts=mounts, linux=linux)


@lru_cache(maxsize=256)
def _of_creation(cpus: int, mems: int, shares: int) -> LinuxContainerAdjustment:
    return LinuxContainerAdjustment(resources=resources_of(cpus, mems, shares))


def _title(pod: Pod, name: str) -> str:
    return f"{pod.namespace or '?'}/{pod.name or '?'}/{name}"


def _cgroup(container: Container) -> str:
    return container.linux.cgroups_path if container.linux else ""


def _priority(asked: Requests, known: ContainerSpec | None) -> int | None:
    # It does not change, and not every source has it.
    if asked.priority is None and known is not None:
        return known.priority
    return asked.priority


def _slot(container: Container) -> str:
    return container.labels.get(KUBELET_NAME) or container.annotations.get(
        KUBELET_NAME, ""
    )


def _present(container: Container) -> Pin:
    return pin_in(container.linux.resources if container.linux else None)
