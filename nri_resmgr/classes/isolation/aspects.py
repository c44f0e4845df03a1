"""What is isolated of a container, each with its CPUs."""

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
    """What an isolation annotation is about; the value is for people and metrics."""

    LOAD_BALANCING = "load-balancing"
    QUOTA = "quota"
    INTERRUPTS = "interrupts"
    C_STATES = "c-states"
    GOVERNOR = "governor"
    SHARED_CPUS = "shared-cpus"


BY_CGROUP: Final = frozenset((Aspect.LOAD_BALANCING, Aspect.QUOTA))
"""Those that need the container's cgroup."""

KEYS: Final = {
    Aspect.LOAD_BALANCING: "cpu-load-balancing.crio.io",
    Aspect.QUOTA: "cpu-quota.crio.io",
    Aspect.INTERRUPTS: "irq-load-balancing.crio.io",
    Aspect.C_STATES: "cpu-c-states.crio.io",
    Aspect.GOVERNOR: "cpu-freq-governor.crio.io",
    Aspect.SHARED_CPUS: "cpu-shared.crio.io",
}
"""The annotations, without the name of a container behind them."""


class Isolation(msgspec.Struct, frozen=True):
    """One thing that is isolated.

    Attributes:
        what: Which.
        setting: In the words of its annotation.
        cpus: About which CPUs it is; the shared ones where these come besides.
    """

    what: Aspect
    setting: str
    cpus: CpuSet


def aspects_of(request: IsolationRequest) -> tuple[Aspect, ...]:
    """Return what a container asks for.

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
    """Yield what is isolated of a container.

    Args:
        one: The container, and its own CPUs.
        cpus: Where it may run; the shared ones among them.
        machine: Tells which CPUs are of one core.
    """
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
