"""Cgroup files that exempt isolated containers from quotas and load balancing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from nri_resmgr.classes.isolation.partitions import (
    EXCLUSIVE,
    NO_FILE,
    PARTITION,
    PartitionKind,
    PartitionWish,
    folders_above,
    handed_down,
)
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.values import CpuSet


class CgroupPaths(msgspec.Struct, frozen=True):
    """The folders of a container's cgroup, by the host's paths.

    Attributes:
        quotas: Folders whose quota applies to it, its pod's first.
        cpuset: The folder with its CPUs.
        top: The root of all cgroups with CPUs, which has no settings itself.
        is_v2: Whether this is cgroup v2.
        has_exclusive: Whether cgroup v2 has ``cpuset.cpus.exclusive``.
    """

    quotas: tuple[str, ...]
    cpuset: str
    top: str
    is_v2: bool = True
    has_exclusive: bool = True


IsolatedCgroup = tuple[CgroupPaths, Isolated]


def cgroup_files(
    placed: Sequence[IsolatedCgroup], isolated: CpuSet
) -> Mapping[str, str]:
    """Return path and text of the files, in the order of writing.

    A container without a quota is still limited by its pod's, so both are removed, the
    pod's first: in cgroup v1 no cgroup may have more than its parent.

    In cgroup v2 an isolated partition removes CPUs from load balancing; every cgroup
    above has to have the CPUs as exclusive ones, since Linux 6.7. Cgroup v1 has a
    switch in each cgroup, which has an effect only if it is off in all cgroups above.
    The CPUs of ``isolcpus=`` are never balanced.

    *isolated* are the CPUs of ``isolcpus=``.

    Source:
        Linux, Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files";
        cgroup-v1/cpusets.rst, 1.7; CRI-O, high-performance hooks.
    """
    files: dict[str, str] = {}
    for place, one in placed:
        if one.request.unlimited or one.request.shared:
            v1 = ("cpu.cfs_quota_us", "-1")
            name, text = ("cpu.max", "max") if place.is_v2 else v1
            files |= {f"{folder}/{name}": text for folder in place.quotas}
    asked = [pair for pair in placed if _is_asked_for(pair[1], isolated)]
    unbalanced = [pair for pair in asked if pair[0].has_exclusive]
    files |= _exclusive_above(unbalanced)
    for place, one in unbalanced:
        if place.is_v2:
            files[f"{place.cpuset}/{EXCLUSIVE}"] = str(one.cpus)
            files[f"{place.cpuset}/{PARTITION}"] = PartitionKind.ISOLATED.value
        else:
            files[f"{place.cpuset}/cpuset.sched_load_balance"] = "0"
    return files


def ineffective_isolation(
    placed: Iterable[IsolatedCgroup],
    isolated: CpuSet,
    present: Mapping[str, str | None],
) -> Iterator[tuple[Isolated, str]]:
    """Yield the containers whose CPUs are still balanced, each with the reason.

    The kernel accepts an impossible partition, and shows that in the file.

    *present* are the contents of the files of `load_balance_state`, *isolated* the CPUs
    of ``isolcpus=``.
    """
    for place, one in placed:
        if _is_asked_for(one, isolated):
            for path in load_balance_state(place):
                text = present.get(path)
                if why := _why_ineffective(path, text, place):
                    yield one, why
                    break


def load_balance_state(place: CgroupPaths) -> tuple[str, ...]:
    """Return the files that show whether a container's CPUs are balanced."""
    if place.is_v2:
        return (f"{place.cpuset}/{PARTITION}",)
    folders = (*folders_above(place.cpuset, place.top), place.cpuset)
    return tuple(f"{one}/cpuset.sched_load_balance" for one in (place.top, *folders))


def _is_asked_for(one: Isolated, isolated: CpuSet) -> bool:
    return one.request.unbalanced and not one.cpus <= isolated


def _exclusive_above(unbalanced: Iterable[IsolatedCgroup]) -> dict[str, str]:
    """Return files that give each cgroup the exclusive CPUs below it, top down."""
    wishes = (
        PartitionWish(one.container, place.cpuset, place.top, one.cpus)
        for place, one in unbalanced
        if place.is_v2
    )
    return {
        f"{folder}/{EXCLUSIVE}": str(cpus)
        for folder, cpus in handed_down(wishes).items()
    }


def _why_ineffective(path: str, text: str | None, place: CgroupPaths) -> str:
    if not place.has_exclusive:
        return NO_FILE
    if text is None:
        return f"there is no {path}"
    text = text.strip()
    if text == ("isolated" if place.is_v2 else "0"):
        return ""
    return f"{path} is {text!r}"
