"""What isolated containers ask of the machine: its CPUs, and its interrupts."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.classes.cpu.requests import CpuClassRequest
from nri_resmgr.classes.isolation.requests import IrqBalancing, Isolated
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


def cpu_class_requests(isolated: Iterable[Isolated]) -> tuple[CpuClassRequest, ...]:
    """Return what containers ask of governors and idle states.

    `nri_resmgr.classes.cpu.requests.with_requests` puts it on top of CPU classes: what a
    container asks for wins over what the class of its CPUs says, and the rest of the
    class stays.
    """
    return tuple(
        CpuClassRequest(one.cpus, one.request.governor, one.request.wake_latency)
        for one in isolated
        if one.request.governor or one.request.wake_latency
    )


def interrupt_free_cpus(isolated: Iterable[Isolated], machine: Machine) -> CpuSet:
    """Return the CPUs that shall take no interrupts.

    `nri_resmgr.classes.irq.placement.without_cpus` takes them out of a placement.
    """
    return CpuSet.union(_quiet(one, machine) for one in isolated)


def housekeeping_cpus(cpus: CpuSet, machine: Machine) -> CpuSet:
    """Return the first of a container's CPUs, and its own threads of the same core.

    Args:
        cpus: Those of the container, at least one.
        machine: Tells which are of one core.

    Source:
        CRI-O, ``irq-load-balancing.crio.io: housekeeping``.
    """
    return machine.core_of(cpus.first).cpus & cpus


def _quiet(one: Isolated, machine: Machine) -> CpuSet:
    match one.request.irq:
        case IrqBalancing.DISABLED:
            return one.cpus
        case IrqBalancing.HOUSEKEEPING:
            return one.cpus - housekeeping_cpus(one.cpus, machine)
        case _:
            return CpuSet()
