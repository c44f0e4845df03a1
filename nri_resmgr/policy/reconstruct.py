"""Requests of a container from its cgroup values, and a check of other sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.events import OF_KUBELET, RequestOrigin
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
from nri_resmgr.values import ONE_CPU, Bytes, MilliCpus, QosClass

# The kubelet may know a node memory that differs from ours by a few pages.
_OOM_TOLERANCE: Final = 1


class Requests(msgspec.Struct, frozen=True):
    """The amounts that a container asks for; 0 without a request, None without a limit.

    The memory request is 0 as well if unknown. Huge pages are listed by size, without
    those of 0. The priority is that of the pod, None if unknown.
    """

    cpu: MilliCpus = MilliCpus(0)
    cpu_limit: MilliCpus | None = None
    memory: Bytes = Bytes(0)
    memory_limit: Bytes | None = None
    hugepages: tuple[HugePages, ...] = ()
    extended: Mapping[str, int] = {}
    source: RequestOrigin = RequestOrigin.OCI
    priority: int | None = None


class CgroupValues(msgspec.Struct, frozen=True):
    """The values of an OCI spec that depend on requests; 0 means unknown.

    Attributes:
        shares: ``cpu.shares``.
        quota: Microseconds per period; negative for unlimited.
        period: Microseconds.
        memory_limit: Bytes.
        memory_floor: ``memory.min`` or ``memory.low``, bytes: the kubelet's memory
            QoS writes the request there.
        oom_score_adj: None if unknown.
        hugepages: Pages by size, without those of 0; None if unknown.
    """

    shares: int = 0
    quota: int = 0
    period: int = 0
    memory_limit: int = 0
    memory_floor: int = 0
    oom_score_adj: int | None = None
    hugepages: tuple[HugePages, ...] | None = None


def reconstruct(values: CgroupValues, qos: QosClass, capacity: Bytes) -> Requests:
    """Return the requests that lead to *values* by the kubelet's rules.

    *qos* is that of the pod, and *capacity* the node's memory, 0 if unknown.
    """
    limit = limited_cpus(values.quota, values.period)
    request = requested_cpus(values.shares, limit)
    # A Guaranteed container requests its limit, and its quota stays when we set other
    # shares. But in a pod with pod-level resources the quota may be the pod's: then the
    # shares fit neither.
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
    claimed: Requests,
    values: CgroupValues,
    qos: QosClass,
    capacity: Bytes,
    *,
    own_oom_score: bool = True,
) -> str:
    """Return the first value in which *claimed* contradicts the OCI spec.

    Values that the OCI spec does not have cannot contradict. *capacity* is the node's
    memory, 0 if unknown. Without *own_oom_score* the oom_score_adj does not follow from
    the container's request alone: that of sidecars, and in pods with pod-level
    resources, may be lower.

    Returns:
        Text such as ``"cpu.shares is 1024, expected 2048"``; empty if all agree.
    """
    for name, found, expected in _differences(claimed, values, qos):
        return f"{name} is {found}, expected {expected}"
    found = values.oom_score_adj
    if qos is QosClass.BURSTABLE and capacity and found is not None:
        expected = oom_score_adj_of(claimed.memory, capacity)
        lowest = expected - _OOM_TOLERANCE if own_oom_score else MIN_BURSTABLE_OOM
        in_range = MIN_BURSTABLE_OOM <= found <= MAX_BURSTABLE_OOM
        if in_range and not lowest <= found <= expected + _OOM_TOLERANCE:
            return f"oom_score_adj is {found}, expected {expected}"
    return ""


def resized(claimed: Requests, values: CgroupValues, qos: QosClass) -> Requests:
    """Return *claimed*, with the amounts that a resize has changed.

    A resize changes cgroup values of CPUs and memory only. A Guaranteed container
    requests its limits.
    """
    limit, memory_limit = claimed.cpu_limit, claimed.memory_limit
    request, memory = claimed.cpu, claimed.memory
    if values.quota > 0:
        limit = limited_cpus(values.quota, values.period)
    # Exactly: after a resize these are not the shares that we have set.
    if values.shares and values.shares != shares_of(request):
        request = requested_cpus(values.shares, limit)
    if values.memory_limit > 0:
        memory_limit = Bytes(values.memory_limit)
    if qos is QosClass.GUARANTEED:
        if values.quota > 0 and limit is not None and _fits(limit, values.shares):
            request = limit
        elif limit is not None:  # the kubelet dropped the quota of exclusive CPUs
            limit = request
        memory = memory_limit or memory
    return msgspec.structs.replace(
        claimed,
        cpu=request,
        cpu_limit=limit,
        memory=Bytes(values.memory_floor or memory),
        memory_limit=memory_limit,
        source=RequestOrigin.KUBELET_RESIZED
        if claimed.source in OF_KUBELET
        else RequestOrigin.RESIZED,
    )


def _differences(
    claimed: Requests, values: CgroupValues, qos: QosClass
) -> Iterator[tuple[str, object, object]]:
    shares = values.shares
    # Only containers of Guaranteed pods have exclusive CPUs.
    may_be_ours = qos is QosClass.GUARANTEED and _fits(claimed.cpu, shares)
    if shares and shares != shares_of(claimed.cpu) and not may_be_ours:
        yield "cpu.shares", values.shares, shares_of(claimed.cpu)
    if values.quota > 0:
        limit, period = claimed.cpu_limit, values.period or DEFAULT_PERIOD
        quota = None if limit is None else quota_of(limit, period)
        if quota != values.quota:
            yield "cpu quota", values.quota, quota or "none"
    if values.memory_limit > 0 and values.memory_limit != claimed.memory_limit:
        yield "memory limit", values.memory_limit, claimed.memory_limit or "none"
    if values.memory_floor and values.memory_floor != claimed.memory:
        yield "memory.min or memory.low", values.memory_floor, claimed.memory or "none"
    pages = values.hugepages
    if pages is not None and set(pages) != set(claimed.hugepages):
        yield "hugepage limit", _listed(pages), _listed(claimed.hugepages)


def _fits(request: MilliCpus, shares: int) -> bool:
    # We give a container with exclusive and shared CPUs the weight of its shared
    # fraction alone.
    fraction = MilliCpus(request % ONE_CPU or request)
    return shares in {0, shares_of(request), shares_of(fraction)}


def _memory(
    values: CgroupValues, qos: QosClass, capacity: Bytes, *, own_limits: bool
) -> Bytes:
    if values.memory_floor:
        return Bytes(values.memory_floor)
    if qos is QosClass.GUARANTEED and own_limits:
        return Bytes(max(values.memory_limit, 0))
    if qos is not QosClass.BURSTABLE or values.oom_score_adj is None:
        return Bytes(0)
    estimate = requested_memory(values.oom_score_adj, capacity)
    # Then the score does not follow from the request, as with pod-level resources.
    impossible = 0 < values.memory_limit <= estimate
    return Bytes(0) if impossible else estimate


def _listed(pages: tuple[HugePages, ...]) -> str:
    return ", ".join(f"{one.count} of {one.size} bytes" for one in pages) or "none"
