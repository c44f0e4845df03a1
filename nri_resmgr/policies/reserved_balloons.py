"""Applies reserved CPUs to the built-in balloon type of the node's own containers."""

from __future__ import annotations

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.config.balloon_types import BalloonTypeConfig
from nri_resmgr.config.balloons import BalloonsConfig
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from nri_resmgr.values.counts import count_text


class ReservedCpus(msgspec.Struct, frozen=True):
    """The number of reserved CPUs, and which ones where they are listed."""

    count: int
    cpus: CpuSet | None


def reserved_type(
    written: BalloonTypeConfig, config: BalloonsConfig, reserved: ReservedCpus
) -> BalloonTypeConfig:
    """Return the type with the sizes and namespaces that the reservation gives it.

    Raises:
        BadSetting: The type has other CPUs, or another number of them.
    """
    if config.reserved_exact and written.share_idle:
        why = "contradicts reservedExact, which excludes all other CPUs"
        raise BadSetting(f"{written.path}.shareIdleCPUsInSame", why)
    namespaces = (
        "kube-system",
        *config.reserved_pool_namespaces,
        *written.namespaces,
    )
    changes: dict[str, object] = {"min_balloons": 1, "max_balloons": 1}
    if reserved.cpus is not None:
        changes["priority"] = "normal"
        if not (written.min_cpus or written.components or written.cpus):
            # The node's own containers have the reserved CPUs from the start.
            most = written.max_cpus or reserved.count
            changes["min_cpus"] = max(min(reserved.count, most), 0)
    elif not (written.components or written.cpus):
        _check_reserved_count(written, reserved.count)
        changes["min_cpus"] = reserved.count
        if config.reserved_exact:
            changes["max_cpus"] = reserved.count
    changes["namespaces"] = tuple(dict.fromkeys(namespaces))
    return msgspec.structs.replace(written, **changes)


def _check_reserved_count(written: BalloonTypeConfig, count: int) -> None:
    why = f"but reservedResources.cpu is {count_text(count, 'CPU')}"
    if written.min_cpus and written.min_cpus != count:
        raise BadSetting(f"{written.path}.minCPUs", f"{written.min_cpus}, {why}")
    if written.max_cpus and written.max_cpus < count:
        raise BadSetting(f"{written.path}.maxCPUs", f"{written.max_cpus}, {why}")


def per_socket(
    written: BalloonTypeConfig,
    config: BalloonsConfig,
    reserved: ReservedCpus,
    machine: Machine,
) -> tuple[BalloonTypeConfig, tuple[CpuSet, ...]]:
    """Give every socket a reserved balloon, with its part of the reserved CPUs.

    Returns:
        The type, and the CPUs that its balloons take before all others.

    Raises:
        BadSetting: The type has CPUs of its own.
    """
    sockets = [package.cpus for package in machine.packages]
    each = -(-written.min_cpus // len(sockets))  # rounded up
    if reserved.cpus is not None:
        sockets = [cpus & reserved.cpus for cpus in sockets if cpus & reserved.cpus]
        each = min(each, *(len(cpus) for cpus in sockets))
        if config.reserved_exact:
            return exactly(written, tuple(sockets)), ()
    count = len(sockets)
    most = each if written.max_cpus == written.min_cpus else written.max_cpus
    changed = msgspec.structs.replace(
        written, min_balloons=count, max_balloons=count, min_cpus=each, max_cpus=most
    )
    return changed, tuple(sockets)


def exactly(written: BalloonTypeConfig, cpus: tuple[CpuSet, ...]) -> BalloonTypeConfig:
    """Give the type exactly these CPUs, one balloon for each set.

    Raises:
        BadSetting: It has CPUs of its own.
    """
    if written.cpus or written.components or written.max_cpus:
        why = "sets the CPUs of type reserved; remove its cpus, components and maxCPUs"
        raise BadSetting("$.spec.reservedExact", why)
    return msgspec.structs.replace(written, cpus=cpus)
