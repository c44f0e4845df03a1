"""Events that a policy decides on, and the containers in them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.policy.claims import Claim
from nri_resmgr.policy.pool_request import NO_POOL_REQUEST, PoolRequest
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.topology import HugePages
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import (
    NO_CPUS,
    NO_NODES,
    Bytes,
    CpuSet,
    MilliCpus,
    NodeSet,
    QosClass,
    StoredValue,
)


class Pin(StoredValue, frozen=True):
    """The CPUs and memory nodes that a container may use, and its weight there.

    An empty set means not pinned: no runtime can remove a pinning. ``cpu.shares`` of 0
    stay as the kubelet set them.
    """

    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES
    shares: int = 0

    def __bool__(self) -> bool:
        return bool(self.cpus.bits or self.mems.bits or self.shares)

    def since(self, sent: Pin) -> Pin:
        """Return the part that differs from *sent*, which may be empty."""
        cpus, mems, shares = self.cpus.bits, self.mems.bits, self.shares
        return pinning(
            0 if cpus == sent.cpus.bits else cpus,
            0 if mems == sent.mems.bits else mems,
            0 if shares == sent.shares else shares,
        )

    def over(self, sent: Pin) -> Pin:
        """Return the pin that holds after this was sent on top of *sent*."""
        if self.cpus.bits and self.mems.bits and self.shares:
            return self
        both = Pin(
            cpus=self.cpus or sent.cpus,
            mems=self.mems or sent.mems,
            shares=self.shares or sent.shares,
        )
        # The same object where possible: ledgers find most changes by identity.
        return self if both == self else both


NO_PIN: Final = Pin()


@lru_cache(maxsize=1024)
def pinning(cpus: int, mems: int, shares: int) -> Pin:
    """Return the pin of these masks, usually the same object each time.

    Pins of containers with equal CPUs are then compared by identity.
    """
    return Pin(CpuSet(cpus), NodeSet(mems), shares)


class RequestOrigin(enum.StrEnum):
    """The source of the amounts of a request; the first available source wins.

    `ADJUSTMENT` is an object of the cluster, which overrides all others, and `KUBELET`
    the kubelet's Pods API. `RESIZED` is an annotation that agreed when the container
    was created; the cgroup values that have changed since have replaced its amounts.
    `KUBELET_RESIZED` is the same until the kubelet reports the resize. `OVERHEAD`
    is no container's, but that of its pod (``spec.overhead``).
    """

    ADJUSTMENT = "adjustment"
    KUBELET = "kubelet"
    KUBELET_RESIZED = "kubelet, resized"
    ANNOTATION = "annotation"
    RESIZED = "annotation, resized"
    OCI = "oci"
    STALE = "stale-annotation"
    STALE_KUBELET = "stale-kubelet"
    OVERHEAD = "pod overhead"


OF_KUBELET: Final = (RequestOrigin.KUBELET, RequestOrigin.KUBELET_RESIZED)
"""Those whose amounts the kubelet has reported."""

EXACT_ORIGINS: Final = (
    RequestOrigin.ADJUSTMENT,
    *OF_KUBELET,
    RequestOrigin.ANNOTATION,
    RequestOrigin.RESIZED,
)
"""Those that are not estimated from cgroup values."""


class Adjusted(StoredValue, frozen=True):
    """The fields of a container that an adjustment has replaced, as they were.

    Attributes:
        name: Of the adjustment.
    """

    name: str
    request: MilliCpus = MilliCpus(0)
    limit: MilliCpus | None = None
    memory_request: Bytes = Bytes(0)
    memory_limit: Bytes | None = None
    source: RequestOrigin = RequestOrigin.OCI
    preferences: Preferences = NO_PREFERENCES


class PodBudget(StoredValue, frozen=True):
    """The CPUs and memory that a pod itself has (``spec.resources``).

    Attributes:
        memory_limit: None without one.
    """

    request: MilliCpus
    limit: MilliCpus
    memory_limit: Bytes | None


class ContainerSpec(StoredValue, frozen=True):
    """A container as policies see it.

    Attributes:
        id: The runtime's id.
        pod: Id of the pod sandbox.
        slot: The name in the pod under which containers succeed each other: the
            kubelet starts the next one only when the last one has exited. Empty
            where that is not guaranteed.
        request: CPU request; 0 without one.
        limit: CPU limit; None without one.
        created: When the runtime created it, UNIX nanoseconds; 0 if unknown.
        present: Its present pin, as far as the runtime reports it.
        memory_request: 0 without one, or if unknown.
        hugepages: Limits of huge pages by size.
        pod_uid: Kubernetes' id of the pod.
        tags: Its annotations.
        pod_tags: The pod's annotations.
        preferences: What its annotations ask for.
        pool_request: What it asks of static pools.
        hints: Locality of the devices and files that it uses.
        source: Origin of the amounts.
        started: When the runtime started it, UNIX nanoseconds; 0 before that.
        extended: Extended resources by name, such as devices; only known from the
            pod's specification.
        shares_budget: Whether its amounts are a part of those of its pod
            (``spec.resources``), which it shares with other containers.
        budget: The amounts of its pod since these were resized: runtimes go on
            reporting those of the pod's creation. None before that. Not for policies.
        cgroup: Its cgroup as in the OCI spec; empty if unknown. Not for policies.
        pid: Its first process; 0 if unknown. Not for policies.
        adjusted: What an adjustment has replaced in it; None without one. Not for
            policies.
        claims: The UIDs of the prepared claims whose CPUs it has.
        claimed: The CPUs of these claims.
        priority: The priority of its pod (``spec.priority``), as the kubelet reports
            it; None if unknown.
    """

    id: str
    pod: str = ""
    title: str = ""
    slot: str = ""
    namespace: str = ""
    qos: QosClass = QosClass.BEST_EFFORT
    request: MilliCpus = MilliCpus(0)
    limit: MilliCpus | None = None
    memory_limit: Bytes | None = None
    created: int = 0
    present: Pin = NO_PIN
    memory_request: Bytes = Bytes(0)
    hugepages: tuple[HugePages, ...] = ()
    name: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    labels: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    pod_labels: Mapping[str, str] = {}
    pod_tags: Mapping[str, str] = {}
    preferences: Preferences = NO_PREFERENCES
    hints: tuple[Hint, ...] = ()
    source: RequestOrigin = RequestOrigin.OCI
    started: int = 0
    extended: Mapping[str, int] = {}
    shares_budget: bool = False
    budget: PodBudget | None = None
    cgroup: str = ""
    pid: int = 0
    pool_request: PoolRequest = NO_POOL_REQUEST
    adjusted: Adjusted | None = None
    claims: tuple[str, ...] = ()
    claimed: CpuSet = NO_CPUS
    priority: int | None = None

    @property
    def origin(self) -> str:
        """The origin of its amounts, with the name of an adjustment."""
        if self.source is RequestOrigin.ADJUSTMENT and self.adjusted is not None:
            return f"{self.source} {self.adjusted.name}"
        return str(self.source)

    @property
    def own_source(self) -> RequestOrigin:
        """The origin of its amounts without an adjustment."""
        return self.source if self.adjusted is None else self.adjusted.source

    @property
    def own_preferences(self) -> Preferences:
        """Its preferences without an adjustment."""
        return self.preferences if self.adjusted is None else self.adjusted.preferences

    @property
    def whole_cpus(self) -> int:
        """Number of exclusive CPUs that a Guaranteed container asks for, or 0.

        A missing limit is accepted: the kubelet drops the quota of containers that
        its static CPU manager would give exclusive CPUs.
        """
        if self.qos is not QosClass.GUARANTEED:
            return 0
        if self.limit is not None and self.limit != self.request:
            return 0
        count, fraction = divmod(self.request, 1000)
        return 0 if fraction else count


class PodCreated(msgspec.Struct, frozen=True):
    """A pod is about to be created; none of its containers exists yet.

    Attributes:
        expected: Its containers, if an annotation lists them, without init containers
            that end before the others start. Their ids are empty.
        announced: The names of all containers that it lists.
        overhead: What the pod itself needs beside its containers, with the name
            `nri_resmgr.policy.overhead_name.OVERHEAD_NAME`; None for nothing.
        in_vm: Whether its containers run in one virtual machine.
    """

    pod: str
    expected: tuple[ContainerSpec, ...] = ()
    announced: frozenset[str] = frozenset()
    overhead: ContainerSpec | None = None
    in_vm: bool = False


class PodOverhead(msgspec.Struct, frozen=True):
    """The overhead of a present pod; it may be accounted already, or have changed.

    Attributes:
        spec: As in `PodCreated`.
    """

    pod: str
    spec: ContainerSpec


class Created(msgspec.Struct, frozen=True):
    """A container is about to be created."""

    spec: ContainerSpec


class Updated(msgspec.Struct, frozen=True):
    """A container should get the resources of *spec*, which may be the present ones."""

    spec: ContainerSpec


class Started(msgspec.Struct, frozen=True):
    """A container starts."""

    id: str


class ColdStartEnded(msgspec.Struct, frozen=True):
    """The cold start of a container is over: DRAM is no longer withheld."""

    id: str


class Stopped(msgspec.Struct, frozen=True):
    """A container has stopped; it may be unknown."""

    id: str


class Removed(msgspec.Struct, frozen=True):
    """A container is removed; NRI's reply to this cannot carry updates."""

    id: str


class PodStopped(msgspec.Struct, frozen=True):
    """A pod's last container has stopped; the reply cannot carry updates either."""

    pod: str


class ClaimPrepared(msgspec.Struct, frozen=True):
    """A claim should get its CPUs; again where it has them already."""

    claim: Claim


class ClaimReturned(msgspec.Struct, frozen=True):
    """A claim gives its CPUs back; it may be unknown."""

    uid: str


class Rebalance(msgspec.Struct, frozen=True):
    """Containers should move to where they would be placed now.

    Attributes:
        limit: The most containers that may move to another pool.
        busy: How busy each online CPU was, in thousandths of the time; empty if
            unknown.
    """

    limit: int
    busy: Mapping[int, int] = {}


class Synchronized(msgspec.Struct, frozen=True):
    """All containers of the runtime; they replace all that was known before.

    *pods* are the ids of all pods, also of those without containers; None if unknown.
    """

    specs: tuple[ContainerSpec, ...]
    pods: frozenset[str] | None = None


Event: TypeAlias = (
    PodCreated
    | PodOverhead
    | Created
    | Started
    | ColdStartEnded
    | Updated
    | Stopped
    | Removed
    | PodStopped
    | ClaimPrepared
    | ClaimReturned
    | Rebalance
    | Synchronized
)
