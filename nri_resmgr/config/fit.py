"""Whether the CPUs that a configuration names are there on a machine."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.config.cpus import AllBut, Amount, KnownCpus, Listed
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

AVAILABLE: Final = "$.spec.availableResources.cpu"
RESERVED: Final = "$.spec.reservedResources.cpu"


class FittingCpus(msgspec.Struct, frozen=True):
    """CPUs of a configuration on one machine: a set, or how many of the rest.

    Attributes:
        available: Of the online CPUs.
        reserved: Of the available CPUs; None where nothing was said.
    """

    available: CpuSet | int
    reserved: CpuSet | int | None


def fit_cpus(
    available: KnownCpus | None, reserved: KnownCpus | None, machine: Machine
) -> FittingCpus:
    """Check the CPUs of a configuration against *machine*.

    Raises:
        BadSetting: A CPU does not exist or is offline, none is left, or more are
            wanted than there are.
    """
    usable = _available(available, machine)
    if reserved is None:
        return FittingCpus(usable, None)
    if isinstance(usable, int):
        return FittingCpus(usable, _count(reserved, usable))
    match reserved:
        case Amount(count):
            ordinary = usable - machine.isolated
            _check_count(RESERVED, count, len(ordinary) or 1, "that may be reserved")
            return FittingCpus(usable, count)
        case Listed(cpus):
            chosen = cpus
        case AllBut(cpus):
            chosen = usable - cpus
    _check_reserved(chosen, usable, machine)
    return FittingCpus(usable, chosen)


def _available(choice: KnownCpus | None, machine: Machine) -> CpuSet | int:
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


def _count(choice: KnownCpus, available: int) -> int:
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
