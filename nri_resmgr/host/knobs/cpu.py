"""Reads which frequencies, idle states and uncore limits the kernel can set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nri_resmgr.classes.cpu.facts import (
    CPU_ROOT,
    CPUFREQ_ROOT,
    UNCORE_ROOT,
    CpufreqPolicy,
    CpuKnobFacts,
    IdleStates,
    UncoreDomain,
)
from nri_resmgr.host.fields import frequency, optional_cpus, optional_number
from nri_resmgr.host.machine.platform import read_uncore
from nri_resmgr.host.tree import Tree, naming_root
from nri_resmgr.topology import Machine, Uncore
from nri_resmgr.values import CpuSet, KiloHertz

_POLICY: Final = "policy"
_STATE: Final = "state"
_GOVERNORS: Final = "scaling_available_governors"

# Files that switch turbo for all CPUs, and their values when it is off.
_SWITCHES: Final = {
    f"{CPU_ROOT}/intel_pstate/no_turbo": "1",
    f"{CPUFREQ_ROOT}/boost": "0",
}


def read_cpu_knobs(tree: Tree, machine: Machine) -> CpuKnobFacts:
    """Read the facts of a machine that CPU classes need.

    Raises:
        BadHostFile: A file has an invalid value.
        UnreadableHostFile: The kernel refused to read a file.

    Source:
        Linux, Documentation/admin-guide/pm: cpufreq.rst, intel_pstate.rst,
        amd-pstate.rst, cpuidle.rst, intel_uncore_frequency_scaling.rst.
    """
    with naming_root(tree):
        return CpuKnobFacts(
            policies=tuple(_policies(tree, machine.online)),
            idle=_idle(tree, machine.online),
            uncore=tuple(_uncore(tree, machine)),
            packages=tuple(package.cpus for package in machine.packages),
            cores=tuple(core.cpus for core in machine.cores),
            is_turbo_off=any(tree.read(p) == off for p, off in _SWITCHES.items()),
            has_speed_select=machine.has_speed_select,
            punits=machine.speed_select,
        )


def _policies(tree: Tree, online: CpuSet) -> Iterator[CpufreqPolicy]:
    for folder, affected in _folders(tree):
        # A policy whose CPUs are all offline can neither be read nor set.
        if cpus := affected & online:
            epps = f"{folder}/energy_performance_available_preferences"
            yield CpufreqPolicy(
                folder=folder,
                cpus=cpus,
                driver=tree.read(f"{folder}/scaling_driver") or "",
                min=frequency(tree, f"{folder}/cpuinfo_min_freq"),
                max=frequency(tree, f"{folder}/cpuinfo_max_freq"),
                base=frequency(tree, f"{folder}/base_frequency")
                or _nominal(tree, cpus),
                governors=_words(tree, f"{folder}/{_GOVERNORS}"),
                governor=tree.read(f"{folder}/scaling_governor") or "",
                epps=_words(tree, epps),
            )


def _folders(tree: Tree) -> Iterator[tuple[str, CpuSet]]:
    """Yield the folder of each frequency policy with its CPUs."""
    for leader in _numbers(tree.names(CPUFREQ_ROOT), _POLICY):
        folder = f"{CPUFREQ_ROOT}/{_POLICY}{leader}"
        affected = optional_cpus(tree, f"{folder}/affected_cpus")
        yield folder, CpuSet.of(leader) if affected is None else affected


def _words(tree: Tree, path: str) -> tuple[str, ...]:
    return tuple((tree.read(path) or "").split())


def _nominal(tree: Tree, cpus: CpuSet) -> KiloHertz | None:
    """Read the base frequency of the firmware, which is in MHz, 0 if unknown."""
    path = f"{CPU_ROOT}/cpu{cpus.first}/acpi_cppc/nominal_freq"
    found = optional_number(tree, path)
    return KiloHertz(found * 1000) if found else None


def _idle(tree: Tree, online: CpuSet) -> tuple[IdleStates, ...]:
    by_names: dict[tuple[str, ...], list[int]] = {}
    for cpu in online:
        folder = f"{CPU_ROOT}/cpu{cpu}/cpuidle"
        numbers = _numbers(tree.names(folder), _STATE)
        # States are identified by position: stop at a gap.
        count = next((n for n, found in enumerate(numbers) if n != found), len(numbers))
        names = tuple(
            tree.read(f"{folder}/{_STATE}{number}/name") or ""
            for number in range(count)
        )
        if names:
            by_names.setdefault(names, []).append(cpu)
    return tuple(
        IdleStates(CpuSet.from_iterable(cpus), names)
        for names, cpus in by_names.items()
    )


def _uncore(tree: Tree, machine: Machine) -> Iterator[UncoreDomain]:
    """Yield the domains to set: those of a package's dies, else of its clusters."""
    domains = read_uncore(tree)
    by_die = {domain.package for domain in domains if domain.die is not None}
    for domain in domains:
        # The kernel applies the value of a die to its clusters.
        if domain.die is not None or domain.package not in by_die:
            cpus = _served(domain, machine)
            folder = f"{UNCORE_ROOT}/{domain.name}"
            yield UncoreDomain(folder, cpus, domain.min, domain.max)


def _served(domain: Uncore, machine: Machine) -> CpuSet:
    """Return the CPUs of a domain's die, or of its package if the die has none."""
    die = [d for d in machine.dies if (d.package, d.id) == (domain.package, domain.die)]
    packages = [one for one in machine.packages if one.id == domain.package]
    return CpuSet.union(one.cpus for one in die or packages)


def _numbers(names: tuple[str, ...], prefix: str) -> list[int]:
    rests = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(rest) for rest in rests if rest.isascii() and rest.isdecimal())


def read_governors(tree: Tree) -> Mapping[int, tuple[str, ...]]:
    """Read the available governors of each CPU with cpufreq.

    Raises:
        BadHostFile: A list of CPUs is invalid.
        UnreadableHostFile: The kernel refused to read a file.

    Source:
        Linux, Documentation/admin-guide/pm/cpufreq.rst.
    """
    found: dict[int, tuple[str, ...]] = {}
    for folder, cpus in _folders(tree):
        found |= dict.fromkeys(cpus, _words(tree, f"{folder}/{_GOVERNORS}"))
    return found
