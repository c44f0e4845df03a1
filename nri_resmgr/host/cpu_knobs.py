"""What the kernel lets us set about CPUs: frequencies, idle states, uncore."""

from __future__ import annotations

from collections.abc import Iterator
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
from nri_resmgr.host.platform import read_uncore
from nri_resmgr.host.tree import Tree, naming_root
from nri_resmgr.topology import Machine, Uncore
from nri_resmgr.values import CpuSet, KiloHertz

_POLICY: Final = "policy"
_STATE: Final = "state"

# Files that switch turbo for all CPUs, and what they say when it is off.
_SWITCHES: Final = {
    f"{CPU_ROOT}/intel_pstate/no_turbo": "1",
    f"{CPUFREQ_ROOT}/boost": "0",
}


def read_cpu_knobs(tree: Tree, machine: Machine) -> CpuKnobFacts:
    """Read what CPU classes need to know of a machine.

    Args:
        tree: The host.
        machine: The same host: who is online, and where.

    Raises:
        BadHostFile: A file cannot be read as what it should be.
        UnreadableHostFile: The kernel refused to let us read a file.

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
    for leader in _numbers(tree.names(CPUFREQ_ROOT), _POLICY):
        folder = f"{CPUFREQ_ROOT}/{_POLICY}{leader}"
        told = optional_cpus(tree, f"{folder}/affected_cpus")
        # Nothing can be read or set of a policy whose CPUs are all offline.
        if cpus := (CpuSet.of(leader) if told is None else told) & online:
            yield _policy(tree, folder, cpus)


def _policy(tree: Tree, folder: str, cpus: CpuSet) -> CpufreqPolicy:
    def words(name: str) -> tuple[str, ...]:
        return tuple((tree.read(f"{folder}/{name}") or "").split())

    return CpufreqPolicy(
        folder=folder,
        cpus=cpus,
        driver=tree.read(f"{folder}/scaling_driver") or "",
        min=frequency(tree, f"{folder}/cpuinfo_min_freq"),
        max=frequency(tree, f"{folder}/cpuinfo_max_freq"),
        base=frequency(tree, f"{folder}/base_frequency") or _nominal(tree, cpus),
        governors=words("scaling_available_governors"),
        governor=tree.read(f"{folder}/scaling_governor") or "",
        epps=words("energy_performance_available_preferences"),
    )


def _nominal(tree: Tree, cpus: CpuSet) -> KiloHertz | None:
    """Read the base frequency as firmware tells it: in MHz, 0 for unknown."""
    path = f"{CPU_ROOT}/cpu{cpus.first}/acpi_cppc/nominal_freq"
    found = optional_number(tree, path)
    return KiloHertz(found * 1000) if found else None


def _idle(tree: Tree, online: CpuSet) -> tuple[IdleStates, ...]:
    alike: dict[tuple[str, ...], list[int]] = {}
    for cpu in online:
        folder = f"{CPU_ROOT}/cpu{cpu}/cpuidle"
        numbers = _numbers(tree.names(folder), _STATE)
        # A gap would shift the numbers of what comes after it.
        count = next((n for n, found in enumerate(numbers) if n != found), len(numbers))
        names = tuple(
            tree.read(f"{folder}/{_STATE}{number}/name") or ""
            for number in range(count)
        )
        if names:
            alike.setdefault(names, []).append(cpu)
    return tuple(
        IdleStates(CpuSet.from_iterable(cpus), names) for names, cpus in alike.items()
    )


def _uncore(tree: Tree, machine: Machine) -> Iterator[UncoreDomain]:
    """Yield the domains to set: of a package's dies, else of its clusters."""
    domains = read_uncore(tree)
    by_die = {domain.package for domain in domains if domain.die is not None}
    for domain in domains:
        # The kernel passes the value of a die on to the clusters that are in it.
        if domain.die is not None or domain.package not in by_die:
            cpus = _served(domain, machine)
            folder = f"{UNCORE_ROOT}/{domain.name}"
            yield UncoreDomain(folder, cpus, domain.min, domain.max)


def _served(domain: Uncore, machine: Machine) -> CpuSet:
    """Return the CPUs of a domain's die; without one that has any, its package's."""
    die = [d for d in machine.dies if (d.package, d.id) == (domain.package, domain.die)]
    packages = [one for one in machine.packages if one.id == domain.package]
    return CpuSet.union(one.cpus for one in die or packages)


def _numbers(names: tuple[str, ...], prefix: str) -> list[int]:
    rests = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(rest) for rest in rests if rest.isascii() and rest.isdecimal())
