"""Aspects of isolation of a container, each with its CPUs."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.classes.isolation.host import interrupt_free_cpus
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    Isolated,
    IsolationRequest,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

_LATENCIES: Final = {"0": "enable", "n/a": "disable"}  # others are microseconds


class Aspect(enum.StrEnum):
    """Subject of an isolation annotation; the value is used in messages and metrics."""

    LOAD_BALANCING = "load-balancing"
    QUOTA = "quota"
    INTERRUPTS = "interrupts"
    C_STATES = "c-states"
    GOVERNOR = "governor"
    SHARED_CPUS = "shared-cpus"


BY_CGROUP: Final = frozenset((Aspect.LOAD_BALANCING, Aspect.QUOTA))
"""Aspects that need the container's cgroup."""

KEYS: Final = {
    Aspect.LOAD_BALANCING: "cpu-load-balancing.crio.io",
    Aspect.QUOTA: "cpu-quota.crio.io",
    Aspect.INTERRUPTS: "irq-load-balancing.crio.io",
    Aspect.C_STATES: "cpu-c-states.crio.io",
    Aspect.GOVERNOR: "cpu-freq-governor.crio.io",
    Aspect.SHARED_CPUS: "cpu-shared.crio.io",
}
"""The annotations, without the suffix that names a container."""


class Isolation(msgspec.Struct, frozen=True):
    """One aspect of a container's isolation.

    Attributes:
        setting: The value in the form of its annotation.
        cpus: The CPUs that it applies to: the shared ones for shared CPUs.
    """

    what: Aspect
    setting: str
    cpus: CpuSet


def aspects_of(request: IsolationRequest) -> tuple[Aspect, ...]:
    """Return the aspects that a container asks for.

    >>> [str(one) for one in aspects_of(IsolationRequest(unlimited=True, shared=True))]
    ['quota', 'shared-cpus']
    """
    asked = {
        Aspect.LOAD_BALANCING: request.unbalanced,
        Aspect.QUOTA: request.unlimited,
        Aspect.INTERRUPTS: request.irq is not IrqBalancing.ENABLED,
        Aspect.C_STATES: request.wake_latency,
        Aspect.GOVERNOR: request.governor,
        Aspect.SHARED_CPUS: request.shared,
    }
    return tuple(what for what, is_asked in asked.items() if is_asked)


def isolations_of(one: Isolated, cpus: CpuSet, machine: Machine) -> Iterator[Isolation]:
    """Yield the aspects of a container's isolation."""
    request = one.request
    for what in aspects_of(request):
        match what:
            case Aspect.INTERRUPTS:
                yield Isolation(
                    what, request.irq.value, interrupt_free_cpus([one], machine)
                )
            case Aspect.C_STATES:
                latency = request.wake_latency
                setting = _LATENCIES.get(latency, f"max_latency:{latency}")
                yield Isolation(what, setting, one.cpus)
            case Aspect.GOVERNOR:
                yield Isolation(what, request.governor, one.cpus)
            case Aspect.SHARED_CPUS:
                yield Isolation(what, "enable", cpus - one.cpus)
            case _:
                yield Isolation(what, "disable", one.cpus)
