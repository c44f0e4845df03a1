"""The values of a container's OCI spec that tell what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.reconstruct import CgroupValues
from nri_resmgr.policy.requests import limited_cpus, shares_of
from nri_resmgr.stub.model import Container, LinuxResources
from nri_resmgr.stub.model.oci import HugepageLimit, LinuxCpu, LinuxMemory
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes
from nri_resmgr.values.recall import Recall

# The kubelet's memory QoS writes the request into one of these.
_FLOORS: Final = ("memory.min", "memory.low")

# As the kernel names its hugetlb files: binary sizes, in spite of the letters.
_PAGE_SIZE: Final = re.compile(r"(\d{1,9})([KMGT])B", re.ASCII)
_POWERS: Final = {"K": 10, "M": 20, "G": 30, "T": 40}

# From here on a limit is a way to write "unlimited".
_UNLIMITED: Final = 1 << 62

_REMEMBERED: Final = 256

_NOTHING: Final = LinuxResources()
_NO_VALUES: Final = CgroupValues()
_NO_CPU: Final = LinuxCpu()
_NO_MEMORY: Final = LinuxMemory()


def cgroup_values(
    container: Container,
    wanted: LinuxResources | None = None,
    known: ContainerSpec | None = None,
    ours: Pin | None = None,
) -> CgroupValues:
    """Collect the values that the kubelet has made of a container's requests.

    Args:
        container: As it is, or as it is about to be created.
        wanted: What an update asks for; what it leaves out, or gives as 0, stays
            as it is.
        known: What was known of it before: its shares may be ours by now.
        ours: What we told last, where nobody says that it has not been resized
            since; None where it has not.
    """
    linux = container.linux
    score = linux.oom_score_adj if linux else None
    told = _told((linux and linux.resources) or _NOTHING)
    shares = told.shares
    if known and (ours is None or _is_as_known(told, known, ours)):
        shares = shares_of(known.request)
    asked = _NO_VALUES if wanted is None else _told(wanted)
    return _values(
        asked.shares or shares,
        asked.quota or told.quota,
        asked.period or told.period,
        asked.memory_limit or told.memory_limit,
        asked.memory_floor or told.memory_floor,
        score,
        told.hugepages if asked.hugepages is None else asked.hugepages,
    )


def _is_as_known(told: CgroupValues, known: ContainerSpec, ours: Pin) -> bool:
    usual = {0, ours.shares, shares_of(known.request)}
    limit = limited_cpus(told.quota, told.period)
    return told.shares in usual and limit == known.limit


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


# The replicas of a deployment have the same resources, and the stub the same value
# for them. So have their values, with the same OOM score, for whoever comes next.
_told: Final = Recall(_read, most=32)
_values: Final = lru_cache(maxsize=_REMEMBERED)(CgroupValues)


def _floor(unified: Mapping[str, str]) -> int:
    texts = [unified.get(name, "") for name in _FLOORS]
    amounts = [int(text) for text in texts if text.isascii() and text.isdecimal()]
    return next((amount for amount in amounts if amount), 0)


def _hugepages(limits: Sequence[HugepageLimit]) -> tuple[HugePages, ...]:
    # Most nodes tell of every size with a limit of 0.
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
