"""What a container asks for, out of its cgroup values; and whether others agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.events import Source
from nri_resmgr.policy.requests import (
    DEFAULT_PERIOD,
    MAX_BURSTABLE_OOM,
    MIN_BURSTABLE_OOM,
    limited_cpus,
    oom_score_adj_of,
    quota_of,
    requested_cpus,
    requested_memory,
    shares_of,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, MilliCpus, QosClass

_NO_CPUS: Final = MilliCpus(0)
_NO_MEMORY: Final = Bytes(0)
_NO_COUNTS: Final[Mapping[str, int]] = {}
_CPU: Final = 1000  # thousandths

# The node's memory that the kubelet reckons with may be a few pages off ours.
_OOM_SLACK: Final = 1


class Requests(msgspec.Struct, frozen=True):
    """The amounts that a container asks for.

    Attributes:
        cpu: 0 without a request.
        cpu_limit: None without one.
        memory: 0 without a request, or where nobody knows.
        memory_limit: None without one.
        hugepages: Pages of each size, none of 0.
        extended: Extended resources by name.
        source: Where all this comes from.
    """

    cpu: MilliCpus = _NO_CPUS
    cpu_limit: MilliCpus | None = None
    memory: Bytes = _NO_MEMORY
    memory_limit: Bytes | None = None
    hugepages: tuple[HugePages, ...] = ()
    extended: Mapping[str, int] = _NO_COUNTS
    source: Source = Source.OCI


class CgroupValues(msgspec.Struct, frozen=True):
    """The values of an OCI spec that tell of requests; 0 is "not told".

    Attributes:
        shares: ``cpu.shares``.
        quota: Microseconds per period; negative for unlimited.
        period: Microseconds.
        memory_limit: Bytes.
        memory_floor: ``memory.min`` or ``memory.low``, bytes: the kubelet's memory
            QoS writes the request there.
        oom_score_adj: None where it was not told.
        hugepages: Pages of each size, none of 0; None where no size was told.
    """

    shares: int = 0
    quota: int = 0
    period: int = 0
    memory_limit: int = 0
    memory_floor: int = 0
    oom_score_adj: int | None = None
    hugepages: tuple[HugePages, ...] | None = None


def reconstruct(values: CgroupValues, qos: QosClass, capacity: Bytes) -> Requests:
    """Give the requests that the kubelet made *values* of.

    Args:
        values: Of one container.
        qos: Of its pod.
        capacity: The node's memory; 0 is "not known".
    """
    limit = limited_cpus(values.quota, values.period)
    request = requested_cpus(values.shares, limit)
    # A Guaranteed container asks for its limit, whose quota is told as it was when
    # we have set other shares. But in a pod with resources of its own the quota may
    # be the pod's: then the shares fit neither.
    if qos is QosClass.GUARANTEED and limit is not None and _fits(limit, values.shares):
        request = limit
    own_limits = limit is None or limit == request
    memory_limit = Bytes(values.memory_limit) if values.memory_limit > 0 else None
    return Requests(
        cpu=request,
        cpu_limit=limit,
        memory=_memory(values, qos, capacity, own_limits=own_limits),
        memory_limit=memory_limit,
        hugepages=values.hugepages or (),
    )


def contradiction(
    told: Requests,
    values: CgroupValues,
    qos: QosClass,
    capacity: Bytes,
    *,
    own_oom_score: bool = True,
) -> str:
    """Say in which value *told* differs from what the kubelet asked the runtime for.

    Values that the OCI spec does not have cannot contradict.

    Args:
        told: What some source says that the container asks for.
        values: What its OCI spec says.
        qos: Of its pod.
        capacity: The node's memory; 0 is "not known".
        own_oom_score: Whether the container's memory request alone makes its
            oom_score_adj. That of sidecars, and in pods with resources of their
            own, may be lower.

    Returns:
        The first value that differs, ``"cpu.shares is 1024, expected 2048"``;
        empty where all agree.
    """
    for name, found, expected in _differences(told, values):
        return f"{name} is {found}, expected {expected}"
    found = values.oom_score_adj
    if qos is QosClass.BURSTABLE and capacity and found is not None:
        expected = oom_score_adj_of(told.memory, capacity)
        lowest = expected - _OOM_SLACK if own_oom_score else MIN_BURSTABLE_OOM
        in_range = MIN_BURSTABLE_OOM <= found <= MAX_BURSTABLE_OOM
        if in_range and not lowest <= found <= expected + _OOM_SLACK:
            return f"oom_score_adj is {found}, expected {expected}"
    return ""


def _differences(
    told: Requests, values: CgroupValues
) -> Iterator[tuple[str, object, object]]:
    if values.shares and not _fits(told.cpu, values.shares):
        yield "cpu.shares", values.shares, shares_of(told.cpu)
    if values.quota > 0:
        limit, period = told.cpu_limit, values.period or DEFAULT_PERIOD
        quota = None if limit is None else quota_of(limit, period)
        if quota != values.quota:
            yield "cpu quota", values.quota, quota or "none"
    if values.memory_limit > 0 and values.memory_limit != told.memory_limit:
        yield "memory limit", values.memory_limit, told.memory_limit or "none"
    if values.memory_floor and values.memory_floor != told.memory:
        yield "memory.min or memory.low", values.memory_floor, told.memory or "none"
    pages = values.hugepages
    if pages is not None and set(pages) != set(told.hugepages):
        yield "hugepage limit", _listed(pages), _listed(told.hugepages)


def _fits(request: MilliCpus, shares: int) -> bool:
    # A container with CPUs of its own and some time of shared ones has been given
    # the weight of the latter alone, by us.
    fraction = MilliCpus(request % _CPU or request)
    return shares in {0, shares_of(request), shares_of(fraction)}


def _memory(
    values: CgroupValues, qos: QosClass, capacity: Bytes, *, own_limits: bool
) -> Bytes:
    if values.memory_floor:
        return Bytes(values.memory_floor)
    if qos is QosClass.GUARANTEED and own_limits:
        return Bytes(max(values.memory_limit, 0))
    if qos is not QosClass.BURSTABLE or values.oom_score_adj is None:
        return _NO_MEMORY
    estimate = requested_memory(values.oom_score_adj, capacity)
    # Then the score says something else: a pod's resources, a tie between containers.
    impossible = 0 < values.memory_limit <= estimate
    return _NO_MEMORY if impossible else estimate


def _listed(pages: tuple[HugePages, ...]) -> str:
    return ", ".join(f"{one.count} of {one.size} bytes" for one in pages) or "none"
