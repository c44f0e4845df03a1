"""Extracts from a container's OCI spec the values that its requests show in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.reconstruct import CgroupValues
from nri_resmgr.policy.requests import (
    limited_cpus,
    qos_of_cgroup,
    qos_of_values,
    requested_cpus,
    shares_of,
)
from nri_resmgr.stub.model import (
    Container,
    HugepageLimit,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, QosClass
from nri_resmgr.values.identity_cache import IdentityCache

# The kubelet's memory QoS writes the request into one of these.
_FLOORS: Final = ("memory.min", "memory.low")

# As in the names of the kernel's hugetlb files: binary sizes, in spite of the letters.
_PAGE_SIZE: Final = re.compile(r"(\d{1,9})([KMGT])B", re.ASCII)
_POWERS: Final = {"K": 10, "M": 20, "G": 30, "T": 40}

# Runtimes write larger limits for "unlimited".
_UNLIMITED: Final = 1 << 62

_CACHED: Final = 256

_NOTHING: Final = LinuxResources()
_NO_VALUES: Final = CgroupValues()
_NO_CPU: Final = LinuxCpu()
_NO_MEMORY: Final = LinuxMemory()


def cgroup_values(
    container: Container,
    wanted: LinuxResources | None = None,
    known: ContainerSpec | None = None,
    last_sent: Pin | None = None,
) -> CgroupValues:
    """Collect the values that the kubelet has made of a container's requests.

    Args:
        container: As it is, or as it is about to be created.
        wanted: Resources of an update; values that are missing or 0 stay unchanged.
        known: The container as it was known before: its CPU shares in the runtime
            may be those that this plugin has set.
        last_sent: The pin last sent to the runtime, where the container may have been
            resized since; None where it has not.
    """
    linux = container.linux
    score = linux.oom_score_adj if linux else None
    present = _from_resources((linux and linux.resources) or _NOTHING)
    shares = present.shares
    if known and (last_sent is None or _is_as_known(present, known, last_sent)):
        shares = shares_of(known.request)
    update = _NO_VALUES if wanted is None else _from_resources(wanted)
    return _values(
        update.shares or shares,
        update.quota or present.quota,
        update.period or present.period,
        update.memory_limit or present.memory_limit,
        update.memory_floor or present.memory_floor,
        score,
        present.hugepages if update.hugepages is None else update.hugepages,
    )


def without_amounts(values: CgroupValues, spec: ContainerSpec) -> CgroupValues:
    """Take values for unknown that are those of the present amounts of a container."""
    has_limit = limited_cpus(values.quota, values.period) == spec.limit
    return replace(
        values,
        shares=0 if values.shares == shares_of(spec.request) else values.shares,
        quota=0 if has_limit else values.quota,
        memory_limit=0
        if values.memory_limit == spec.memory_limit
        else values.memory_limit,
    )


def qos_of(pod: Pod, container: Container, values: CgroupValues) -> QosClass:
    """Return the QoS class of a pod: by its cgroup, or else by a container's values."""
    parent = pod.linux.cgroup_parent if pod.linux else ""
    if qos := qos_of_cgroup(parent):
        return qos
    if qos := qos_of_cgroup(container.linux.cgroups_path if container.linux else ""):
        return qos
    limit = limited_cpus(values.quota, values.period)
    request = requested_cpus(values.shares, limit)
    return qos_of_values(request, limit, values.memory_limit)


def _is_as_known(present: CgroupValues, known: ContainerSpec, last_sent: Pin) -> bool:
    usual = {0, last_sent.shares, shares_of(known.request)}
    limit = limited_cpus(present.quota, present.period)
    return present.shares in usual and limit == known.limit


def _read(resources: LinuxResources) -> CgroupValues:
    cpu, memory = resources.cpu or _NO_CPU, resources.memory or _NO_MEMORY
    pages, unified = resources.hugepage_limits, resources.unified
    return CgroupValues(
        shares=cpu.shares or 0,
        quota=cpu.quota or 0,
        period=cpu.period or 0,
        memory_limit=memory.limit or 0,
        memory_floor=_floor(unified) if unified else 0,
        hugepages=_hugepages(pages) if pages else None,
    )


# The replicas of a deployment have the same resources, for which the stub gives the
# same object. Equal values are one object as well, so that later caches are hit.
_from_resources: Final = IdentityCache(_read, most=32)
_values: Final = lru_cache(maxsize=_CACHED)(CgroupValues)


def _floor(unified: Mapping[str, str]) -> int:
    texts = [unified.get(name, "") for name in _FLOORS]
    amounts = [int(text) for text in texts if text.isascii() and text.isdecimal()]
    return next((amount for amount in amounts if amount), 0)


def _hugepages(limits: Sequence[HugepageLimit]) -> tuple[HugePages, ...]:
    # Most runtimes list every size, with a limit of 0.
    pages = [
        HugePages(size, one.limit // size)
        for one in limits
        if 0 < one.limit < _UNLIMITED and (size := _page_size(one.page_size))
    ]
    return tuple(sorted(pages, key=lambda page: page.size))


@lru_cache(maxsize=32)
def _page_size(text: str) -> Bytes:
    match = _PAGE_SIZE.fullmatch(text)
    return Bytes(int(match[1]) << _POWERS[match[2]] if match else 0)
