"""Chooses the available and the reserved CPUs of a configuration on a machine."""

from __future__ import annotations

from msgspec.structs import replace

from nri_resmgr.config import (
    AVAILABLE,
    RESERVED,
    BadSetting,
    CpuChoice,
    KnownCpus,
    Listed,
    OfCgroup,
    PolicyConfig,
    fit_cpus,
)
from nri_resmgr.host.cgroups.cpuset import cpus_of_cgroup
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, HostError


def choose_cpus(
    available: CpuChoice | None,
    reserved: CpuChoice | None,
    machine: Machine,
    tree: Tree | None,
) -> tuple[CpuSet, CpuSet | None]:
    """Choose the CPUs that may be used, and those of them that are reserved.

    Args:
        available: As configured; None for all that are online.
        reserved: As configured; None where it is not.
        machine: The machine that they are taken from.
        tree: The host, for the CPUs of its cgroups.

    Returns:
        Available and reserved CPUs; None for the latter where none are configured.

    Raises:
        BadSetting: They do not fit the machine, or the cgroup does not exist.
    """
    usable, chosen = fit_cpus(
        _known(available, AVAILABLE, tree), _known(reserved, RESERVED, tree), machine
    )
    if isinstance(usable, int):
        usable = _take(usable, machine.online - machine.isolated, machine)
    # Ordinary CPUs first: the kernel does not balance load over isolated ones.
    if isinstance(chosen, int):
        chosen = _take(chosen, usable - machine.isolated or usable, machine)
    return usable, chosen


def reserved_cpus(
    available: CpuSet, chosen: CpuSet | None, machine: Machine, *, whole_cores: bool
) -> CpuSet:
    """Return the reserved CPUs: by default the lowest one that is not isolated.

    The kubelet's static CPU manager reserves the lowest one, too.

    Args:
        available: The CPUs that may be used.
        chosen: Those of them that the configuration reserves; None where it does not.
        machine: The machine that they are of.
        whole_cores: Whether the other threads of their cores are reserved, too.
    """
    ordinary = available - machine.isolated or available
    reserved = chosen or ordinary.lowest(1)
    if not whole_cores:
        return reserved
    cores = CpuSet.union(machine.core_of(cpu).cpus for cpu in reserved) & ordinary
    # On a machine of one core, containers need the other thread.
    return reserved if ordinary <= cores else reserved | cores


def with_cpus_of_cgroups(config: PolicyConfig, tree: Tree | None) -> PolicyConfig:
    """Return a configuration that lists the CPUs of the cgroups that it names.

    Raises:
        BadSetting: There is no such cgroup, or no host to read it from.
    """
    for field, path in (("available", AVAILABLE), ("reserved", RESERVED)):
        # Policies of other packages may have fields of their own.
        choice = getattr(config, field, None)
        if isinstance(choice, OfCgroup):
            config = replace(config, **{field: _known(choice, path, tree)})
    return config


def _known(choice: CpuChoice | None, path: str, tree: Tree | None) -> KnownCpus | None:
    if not isinstance(choice, OfCgroup):
        return choice
    if tree is None:
        raise BadSetting(path, "cgroups can only be read on the host itself")
    try:
        return Listed(cpus_of_cgroup(tree, choice.path))
    except HostError as error:
        raise BadSetting(path, f"no CPUs of cgroup {choice.path}: {error}") from error


def _take(count: int, free: CpuSet, machine: Machine) -> CpuSet:
    return allocate_cpus(CpuRequest(count=count, free=free), machine).cpus
