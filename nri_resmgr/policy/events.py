"""Events that a policy decides on, and the containers in them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

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
)

_NO_REQUEST = MilliCpus(0)
_NO_MEMORY = Bytes(0)
_NO_TEXTS: Final[Mapping[str, str]] = {}
_NO_COUNTS: Final[Mapping[str, int]] = {}


class Pin(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a container may run and have its memory, and its weight there.

    An empty set means not pinned: no runtime can remove a pinning.

    Attributes:
        cpus: CPUs it may run on.
        mems: Memory nodes it may use.
        shares: ``cpu.shares``; 0 leaves them as the kubelet set them.
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
    """Where the amounts of a request come from; the first available source wins."""

    ANNOTATION = "annotation"
    OCI = "oci"
    STALE = "stale-annotation"


# Names and defaults of fields are part of the format of checkpoints and recordings.
class ContainerSpec(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A container as policies see it.

    Attributes:
        id: The runtime's id.
        pod: Id of the pod sandbox.
        title: ``namespace/pod/container``.
        slot: The name in the pod under which containers succeed each other: the
            kubelet starts the next one only when the last one has exited. Empty
            where that is not guaranteed.
        namespace: Of the pod.
        qos: Of the pod.
        request: CPU request; 0 without one.
        limit: CPU limit; None without one.
        memory_limit: None without one.
        created: When the runtime created it, UNIX nanoseconds; 0 if unknown.
        present: Its present pin, as far as the runtime reports it.
        memory_request: 0 without one, or if unknown.
        hugepages: Limits of huge pages by size.
        name: Its name in the pod.
        pod_name: The pod's name.
        pod_uid: Kubernetes' id of the pod.
        labels: Its labels.
        tags: Its annotations.
        pod_labels: The pod's labels.
        pod_tags: The pod's annotations.
        preferences: What its annotations ask for.
        hints: Locality of the devices and files that it uses.
        source: Origin of the amounts.
        started: When the runtime started it, UNIX nanoseconds; 0 before that.
        extended: Extended resources by name, such as devices; only known from the
            pod's specification.
        cgroup: Its cgroup as in the OCI spec; empty if unknown. Not for policies.
        pid: Its first process; 0 if unknown. Not for policies.
    """

    id: str
    pod: str = ""
    title: str = ""
    slot: str = ""
    namespace: str = ""
    qos: QosClass = QosClass.BEST_EFFORT
    request: MilliCpus = _NO_REQUEST
    limit: MilliCpus | None = None
    memory_limit: Bytes | None = None
    created: int = 0
    present: Pin = NO_PIN
    memory_request: Bytes = _NO_MEMORY
    hugepages: tuple[HugePages, ...] = ()
    name: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    labels: Mapping[str, str] = _NO_TEXTS
    tags: Mapping[str, str] = _NO_TEXTS
    pod_labels: Mapping[str, str] = _NO_TEXTS
    pod_tags: Mapping[str, str] = _NO_TEXTS
    preferences: Preferences = NO_PREFERENCES
    hints: tuple[Hint, ...] = ()
    source: RequestOrigin = RequestOrigin.OCI
    started: int = 0
    extended: Mapping[str, int] = _NO_COUNTS
    cgroup: str = ""
    pid: int = 0

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
        pod: Id of the pod sandbox.
        expected: Its containers, if an annotation lists them, without init containers
            that end before the others start. Their ids are empty.
    """

    pod: str
    expected: tuple[ContainerSpec, ...] = ()


class Created(msgspec.Struct, frozen=True):
    """A container is about to be created."""

    spec: ContainerSpec


class Updated(msgspec.Struct, frozen=True):
    """The resources of a container should change; they may be the same.

    Attributes:
        spec: The container with the new resources.
    """

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


class Synchronized(msgspec.Struct, frozen=True):
    """All containers of the runtime; they replace all that was known before.

    Attributes:
        specs: The containers.
        pods: The ids of all pods, also of those without containers; None if
            unknown.
    """

    specs: tuple[ContainerSpec, ...]
    pods: frozenset[str] | None = None


Event: TypeAlias = (
    PodCreated
    | Created
    | Started
    | ColdStartEnded
    | Updated
    | Stopped
    | Removed
    | PodStopped
    | Synchronized
)
