"""Reads cores and logical CPUs from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.host.fields import (
    cpus,
    frequency,
    number,
    optional_cpus,
    optional_number,
)
from nri_resmgr.host.paths import CPU_ROOT, KIND_LISTS
from nri_resmgr.host.tree import BadHostFile, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Core, CoreKind, Cpu
from nri_resmgr.values import NO_CPUS, CpuSet

# What the kernel writes for "no cluster", as int and as unsigned 16 bits.
_NO_CLUSTER: Final = frozenset({-1, 65535})

_POLICY: Final = re.compile(r"policy(\d{1,5})", re.ASCII)

_Kinds: TypeAlias = dict[CoreKind, CpuSet]

log = Logger(__name__)


def read_cores(tree: Tree, online: CpuSet) -> tuple[Core, ...]:
    """Read package, die, cluster and threads of every core with online CPUs.

    If no CPU has a ``topology`` folder, as in some virtual machines, every CPU counts
    as a core of package 0; that is logged.

    Raises:
        MissingHostFile: A CPU's files are missing while others have them.
        BadHostFile: A file has an invalid value, or two CPUs of a core contradict each
            other.

    Source:
        Linux, Documentation/ABI/stable/sysfs-devices-system-cpu.
    """
    if not any(tree.names(f"{CPU_ROOT}/cpu{cpu}/topology") for cpu in online):
        log.warning("topology.fallback", missing="topology", used="a core per CPU")
        return tuple(Core(0, 0, None, cpu, CpuSet.of(cpu)) for cpu in online)
    kinds = _read_kinds(tree, online)
    cores = [
        _read_core(tree, threads, kinds) for threads in _read_siblings(tree, online)
    ]
    if unknown := CpuSet.union(core.cpus for core in cores if core.package < 0):
        log.warning(
            "topology.fallback", unknown=f"package of CPU {unknown}", used="package 0"
        )
    return tuple(replace(core, package=max(core.package, 0)) for core in cores)


def _read_siblings(tree: Tree, online: CpuSet) -> tuple[CpuSet, ...]:
    """Read the threads of every core, by lowest CPU; all of them must agree."""
    listed = {cpu: _siblings(tree, cpu, online) for cpu in online}
    for cpu, threads in listed.items():
        for other in threads:
            if listed[other] != threads:
                raise BadHostFile(
                    f"{CPU_ROOT}/cpu{other}/topology/core_cpus_list",
                    f"{listed[other]}, but that of CPU {cpu} is {threads}",
                )
    return tuple(threads for cpu, threads in listed.items() if cpu == threads.first)


def _siblings(tree: Tree, cpu: int, online: CpuSet) -> CpuSet:
    path = f"{CPU_ROOT}/cpu{cpu}/topology/core_cpus_list"
    found = optional_cpus(tree, path)
    if found is None:  # Linux before 5.3 has only the other name
        path = f"{CPU_ROOT}/cpu{cpu}/topology/thread_siblings_list"
        found = cpus(tree, path)
    if cpu not in found:
        raise BadHostFile(path, f"CPU {cpu} is not in its own core, {str(found)!r}")
    return found & online


def _read_core(tree: Tree, threads: CpuSet, kinds: _Kinds) -> Core:
    folder = f"{CPU_ROOT}/cpu{threads.first}/topology"
    die = optional_number(tree, f"{folder}/die_id")
    cluster = optional_number(tree, f"{folder}/cluster_id")
    return Core(
        package=number(tree, f"{folder}/physical_package_id"),
        die=max(die or 0, 0),
        cluster=None if cluster in _NO_CLUSTER else cluster,
        id=number(tree, f"{folder}/core_id"),
        cpus=threads,
        kind=_kind_of(threads, kinds),
    )


def _read_kinds(tree: Tree, online: CpuSet) -> _Kinds:
    """Read the CPU lists of a hybrid machine; empty on any other."""
    kinds: _Kinds = {}
    seen = NO_CPUS
    for kind, path in KIND_LISTS.items():
        listed = optional_cpus(tree, path)
        if listed is None:
            continue
        if listed & seen:
            raise BadHostFile(path, f"CPU {listed & seen} is of two kinds")
        seen |= listed
        kinds[kind] = listed
    # Old kernels and some firmware list only one of two kinds.
    missing = [kind for kind in KIND_LISTS if kind not in kinds]
    if len(kinds) == 1 and online - seen:
        kinds[missing[0]] = online - seen
        log.warning("topology.fallback", missing=KIND_LISTS[missing[0]], used="others")
    return kinds


def _kind_of(threads: CpuSet, kinds: _Kinds) -> CoreKind:
    if not kinds:
        return CoreKind.PERFORMANCE
    for kind, members in kinds.items():
        if threads & members:
            if threads <= members:
                return kind
            raise BadHostFile(
                KIND_LISTS[kind],
                f"lists only some of CPU {threads}, which are one core",
            )
    return CoreKind.OTHER


def read_cpus(tree: Tree, online: CpuSet) -> tuple[Cpu, ...]:
    """Read the frequency facts of every online CPU.

    Raises:
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.
    """
    known = dict.fromkeys(online, Cpu(0))
    for folder, members in _read_policies(tree, online):
        known.update(dict.fromkeys(members, _read_policy(tree, folder)))
    has_capacity = tree.read(f"{CPU_ROOT}/cpu{online.first}/cpu_capacity") is not None
    return tuple(
        replace(
            facts,
            id=cpu,
            capacity=number(tree, f"{CPU_ROOT}/cpu{cpu}/cpu_capacity")
            if has_capacity
            else None,
        )
        for cpu, facts in known.items()
    )


def _read_policies(tree: Tree, online: CpuSet) -> Iterator[tuple[str, CpuSet]]:
    """Yield the folder of each active cpufreq policy with its online CPUs."""
    root = f"{CPU_ROOT}/cpufreq"
    matches = map(_POLICY.fullmatch, tree.names(root))
    leaders = CpuSet.from_iterable(int(match[1]) for match in matches if match)
    for leader in leaders:
        members = CpuSet.of(leader)
        if not online <= leaders:
            # A policy whose CPUs are all offline has no readable values.
            affected = optional_cpus(tree, f"{root}/policy{leader}/affected_cpus")
            members = affected or NO_CPUS
        if members & online:
            yield f"{root}/policy{leader}", members & online


def _read_policy(tree: Tree, folder: str) -> Cpu:
    lowest = frequency(tree, f"{folder}/cpuinfo_min_freq")
    highest = frequency(tree, f"{folder}/cpuinfo_max_freq")
    if lowest and highest and lowest > highest:
        raise BadHostFile(
            f"{folder}/cpuinfo_min_freq", f"{lowest} is above the maximum, {highest}"
        )
    return Cpu(
        0,
        base=frequency(tree, f"{folder}/base_frequency"),
        min=lowest,
        max=highest,
        governor=tree.read(f"{folder}/scaling_governor") or "",
        epp=tree.read(f"{folder}/energy_performance_preference") or "",
    )
