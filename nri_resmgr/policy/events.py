"""What happens to containers, as values that a policy decides on."""

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

    An empty set is "not pinned": no runtime can be told to take a pinning away.

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

    def since(self, told: Pin) -> Pin:
        """Return what has to be told to one who knows *told*; maybe nothing."""
        cpus, mems, shares = self.cpus.bits, self.mems.bits, self.shares
        return pinning(
            0 if cpus == told.cpus.bits else cpus,
            0 if mems == told.mems.bits else mems,
            0 if shares == told.shares else shares,
        )

    def over(self, told: Pin) -> Pin:
        """Return what is in force at one who knew *told* and was told this."""
        if self.cpus.bits and self.mems.bits and self.shares:
            return self
        both = Pin(
            cpus=self.cpus or told.cpus,
            mems=self.mems or told.mems,
            shares=self.shares or told.shares,
        )
        # The same object where possible: ledgers find most news by identity.
        return self if both == self else both


NO_PIN: Final = Pin()


@lru_cache(maxsize=1024)
def pinning(cpus: int, mems: int, shares: int) -> Pin:
    """Return the pin of these masks, and as a rule the same object each time.

    Containers that share then share it, and comparing theirs is cheap.
    """
    return Pin(CpuSet(cpus), NodeSet(mems), shares)


class Source(enum.StrEnum):
    """Where the amounts of a request come from; the first that knows counts."""

    ANNOTATION = "annotation"
    OCI = "oci"
    STALE = "stale-annotation"


class ContainerSpec(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A container as policies see it.

    Attributes:
        id: The runtime's id.
        pod: Id of the pod sandbox.
        title: ``namespace/pod/container``, for people.
        slot: The name in the pod under which containers succeed each other: the
            kubelet starts the next one only when the last one is dead. Empty
            where nobody guarantees that.
        namespace: Of the pod.
        qos: Of the pod.
        request: CPU request; 0 without one.
        limit: CPU limit; None without one.
        memory_limit: None without one.
        created: When the runtime created it, UNIX nanoseconds; 0 when untold.
        present: The pinning that is in force now, as far as the runtime tells.
        memory_request: 0 without one, or where nobody knows.
        hugepages: Pages of each size that it may use.
        name: Its name in the pod.
        pod_name: The pod's name.
        pod_uid: Kubernetes' id of the pod.
        labels: Its labels.
        tags: Its annotations.
        pod_labels: The pod's labels.
        pod_tags: The pod's annotations.
        preferences: What its annotations ask for.
        hints: Where the things that it uses sit.
        source: Where the amounts come from.
        started: When the runtime started it, UNIX nanoseconds; 0 before that.
        extended: Extended resources by name, such as devices; only a source that
            has read the pod's own words knows them.
        cgroup: Its cgroup as in the OCI spec; empty where untold. No policy asks.
        pid: Of its first process; 0 where untold. No policy asks.
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
    source: Source = Source.OCI
    started: int = 0
    extended: Mapping[str, int] = _NO_COUNTS
    cgroup: str = ""
    pid: int = 0

    @property
    def whole_cpus(self) -> int:
        """How many CPUs a Guaranteed container asks to have to itself, or 0.

        Without a quota the request stands alone: the kubelet drops the quota of
        containers that it would give CPUs of their own.
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
        expected: Its containers as far as a source tells them beforehand, init
            containers that end before the others begin left out. Their ids are
            empty: the runtime has none yet.
    """

    pod: str
    expected: tuple[ContainerSpec, ...] = ()


class Created(msgspec.Struct, frozen=True):
    """A container is about to be created; nothing of it runs yet."""

    spec: ContainerSpec


class Updated(msgspec.Struct, frozen=True):
    """Somebody asks for other resources, or for the same ones again.

    Attributes:
        spec: The container as it would be afterwards.
    """

    spec: ContainerSpec


class Started(msgspec.Struct, frozen=True):
    """A container begins to run."""

    id: str


class ColdStartEnded(msgspec.Struct, frozen=True):
    """The time without DRAM that a container asked for is over."""

    id: str


class Stopped(msgspec.Struct, frozen=True):
    """A container has stopped; may be told of one that never was."""

    id: str


class Removed(msgspec.Struct, frozen=True):
    """A container is gone; NRI's reply to this has no room for updates."""

    id: str


class PodStopped(msgspec.Struct, frozen=True):
    """A pod's last container has stopped; no room for updates here either."""

    pod: str


class Synchronized(msgspec.Struct, frozen=True):
    """All containers that there are; whatever was known before is history.

    Attributes:
        specs: The containers.
        pods: The ids of all pods, also of those without containers; None where
            nobody told which are gone.
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
