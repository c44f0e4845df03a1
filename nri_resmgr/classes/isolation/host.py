"""Requests of isolated containers about CPU settings and interrupts."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.classes.cpu.requests import CpuClassRequest
from nri_resmgr.classes.isolation.requests import IrqBalancing, Isolated
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


def cpu_class_requests(isolated: Iterable[Isolated]) -> tuple[CpuClassRequest, ...]:
    """Return the requests of containers about governors and idle states.

    `nri_resmgr.classes.cpu.requests.with_requests` applies them: they override the
    class of the CPUs, of which the rest stays.
    """
    return tuple(
        CpuClassRequest(one.cpus, one.request.governor, one.request.wake_latency)
        for one in isolated
        if one.request.governor or one.request.wake_latency
    )


def interrupt_free_cpus(isolated: Iterable[Isolated], machine: Machine) -> CpuSet:
    """Return the CPUs that take no interrupts.

    `nri_resmgr.classes.irq.placement.without_cpus` removes them from a placement.
    """
    return CpuSet.union(_interrupt_free(one, machine) for one in isolated)


def housekeeping_cpus(cpus: CpuSet, machine: Machine) -> CpuSet:
    """Return the first of a container's CPUs, with its other threads of that core.

    *cpus* must not be empty.

    Source:
        CRI-O, ``irq-load-balancing.crio.io: housekeeping``.
    """
    return machine.core_of(cpus.first).cpus & cpus


def _interrupt_free(one: Isolated, machine: Machine) -> CpuSet:
    match one.request.irq:
        case IrqBalancing.DISABLED:
            return one.cpus
        case IrqBalancing.HOUSEKEEPING:
            return one.cpus - housekeeping_cpus(one.cpus, machine)
        case _:
            return CpuSet()
