"""The configuration of the static policy, and whether it fits a machine."""

from __future__ import annotations

from typing import Final

import attrs

from nri_resmgr.config.cpus import AllBut, Amount, CpuChoice, Listed, read_cpus
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from nri_resmgr.values.by_content import ByContent

AVAILABLE: Final = "$.spec.availableResources.cpu"
RESERVED: Final = "$.spec.reservedResources.cpu"

# Its containers belong to the node, whatever else is listed.
_ALWAYS_RESERVED: Final = "kube-system"


@attrs.frozen(eq=False, repr=False)
class StaticPolicyConfig(ByContent):
    """A ``StaticPolicy`` document; the defaults are safe on every machine.

    Attributes:
        available: CPUs that may be used; None for all that are online.
        reserved: CPUs that no container gets to itself; None for the lowest one.
        reserved_pool_namespaces: Shell patterns of the namespaces whose
            containers run on the reserved CPUs; kube-system is always one.
        pin_cpu: Whether to tell the runtime CPU sets.
        pin_memory: Whether to tell it memory nodes.
        prefer_isolated_cpus: Whether containers that ask for one CPU get
            isolated ones.
        on_failure: ``refuse`` or ``shared``: what becomes of a container whose
            exclusive CPUs cannot be had.
    """

    available: CpuChoice | None = None
    reserved: CpuChoice | None = None
    reserved_pool_namespaces: tuple[str, ...] = (_ALWAYS_RESERVED,)
    pin_cpu: bool = True
    pin_memory: bool = True
    prefer_isolated_cpus: bool = True
    on_failure: str = "refuse"


@attrs.frozen(eq=False, repr=False)
class FittingCpus(ByContent):
    """CPUs of a configuration on one machine: a set, or how many of the rest.

    Attributes:
        available: Of the online CPUs.
        reserved: Of the available CPUs.
    """

    available: CpuSet | int
    reserved: CpuSet | int


def read_static_policy(top: Table) -> StaticPolicyConfig:
    """Read the ``spec`` of a document of this kind.

    Raises:
        BadSetting: The first problem met; its ``path`` says where.
    """
    spec = top.table(
        "spec",
        "availableResources",
        "reservedResources",
        "reservedPoolNamespaces",
        "pinCPU",
        "pinMemory",
        "preferIsolatedCPUs",
        "onFailure",
    )
    default = StaticPolicyConfig()
    namespaces = spec.texts("reservedPoolNamespaces", ())
    return StaticPolicyConfig(
        available=read_cpus(spec.table("availableResources", "cpu")),
        reserved=read_cpus(spec.table("reservedResources", "cpu")),
        reserved_pool_namespaces=tuple(dict.fromkeys((_ALWAYS_RESERVED, *namespaces))),
        pin_cpu=spec.flag("pinCPU", default=default.pin_cpu),
        pin_memory=spec.flag("pinMemory", default=default.pin_memory),
        prefer_isolated_cpus=spec.flag(
            "preferIsolatedCPUs", default=default.prefer_isolated_cpus
        ),
        on_failure=spec.choice("onFailure", ("refuse", "shared"), default.on_failure),
    )


def fit_cpus(config: StaticPolicyConfig, machine: Machine) -> FittingCpus:
    """Check the CPUs of a configuration against *machine*.

    Raises:
        BadSetting: A CPU does not exist or is offline, none is left, or more are
            wanted than there are.
    """
    available = _available(config.available, machine)
    if isinstance(available, int):
        return FittingCpus(available, _count(config.reserved, available))
    ordinary = available - machine.isolated
    match config.reserved:
        case None:
            return FittingCpus(available, (ordinary or available).lowest(1))
        case Amount(count):
            _check_count(RESERVED, count, len(ordinary) or 1, "that may be reserved")
            return FittingCpus(available, count)
        case Listed(cpus):
            reserved = cpus
        case AllBut(cpus):
            reserved = available - cpus
    _check_reserved(reserved, available, machine)
    return FittingCpus(available, reserved)


def _available(choice: CpuChoice | None, machine: Machine) -> CpuSet | int:
    match choice:
        case None:
            return machine.online
        case Amount(count):
            ordinary = machine.online - machine.isolated
            _check_count(AVAILABLE, count, len(ordinary), "that may be used")
            return count
        case Listed(cpus):
            _check_online(AVAILABLE, cpus, machine)
            available = cpus
        case AllBut(cpus):
            available = machine.online - cpus
    if not available:
        raise BadSetting(AVAILABLE, f"no CPU is left of {machine.online}")
    return available


def _count(choice: CpuChoice | None, available: int) -> int:
    if choice is None:
        return 1
    if not isinstance(choice, Amount):
        raise BadSetting(
            RESERVED, "CPUs by number need available CPUs by number (cpuset:LIST)"
        )
    _check_count(RESERVED, choice.count, available, "available")
    return choice.count


def _check_count(path: str, count: int, most: int, what: str) -> None:
    if not 1 <= count <= most:
        raise BadSetting(path, f"{count} CPUs, of {most} {what}; at least 1 is needed")


def _check_online(path: str, cpus: CpuSet, machine: Machine) -> None:
    if missing := cpus - machine.present:
        raise BadSetting(path, f"this machine has no CPU {missing}")
    if offline := cpus - machine.online:
        raise BadSetting(path, f"CPU {offline} is offline")


def _check_reserved(reserved: CpuSet, available: CpuSet, machine: Machine) -> None:
    _check_online(RESERVED, reserved, machine)
    if not reserved:
        raise BadSetting(RESERVED, f"no CPU is left of {available}; 1 is needed")
    if outside := reserved - available:
        raise BadSetting(RESERVED, f"CPU {outside} is not available ({available})")
    isolated = reserved & machine.isolated
    if isolated and len(reserved) > 1:
        raise BadSetting(
            RESERVED,
            f"CPU {isolated} is isolated; the scheduler spreads nothing over "
            "isolated CPUs, so reserve others, or this one alone",
        )
