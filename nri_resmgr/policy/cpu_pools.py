"""Decisions that policies with named pools of CPUs have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from nri_resmgr.policy.events import Pin, pinning
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import ONE_CPU, CpuSet, MilliCpus, NodeSet, PolicyError


@dataclass(eq=False)
class UnknownPool(PolicyError):
    """A container names a pool that the configuration does not have."""

    title: str
    pool: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for the pool {self.pool!r}, which does not exist; "
            f"pools: {', '.join(self.known)}"
        )


def nodes_near(cpus: CpuSet, machine: Machine) -> NodeSet:
    """Return the memory nodes that *cpus* should use; none only if no node has memory.

    These are their own nodes with memory, or the nearest ones. If all of them are
    movable, the nearest that are not are added: a process cannot start on movable
    memory alone.
    """
    near = machine.nearest_memory(cpus)
    if near & machine.normal_nodes:
        return near
    return near | machine.nearest(near, machine.normal_nodes)


def pin_near(
    cpus: CpuSet, machine: Machine, *, pins_cpus: bool = True, pins_memory: bool = True
) -> Pin:
    """Return the pin to *cpus* and the memory near them, as far as these are pinned."""
    return pinning(
        cpus.bits if pins_cpus else 0,
        nodes_near(cpus, machine).bits if pins_memory else 0,
        0,
    )


def without_memory(pin: Pin) -> Pin:
    """Return the pin of a container that preserves its memory nodes."""
    return pinning(pin.cpus.bits, 0, 0) if pin.mems else pin


def with_use(pool: PoolUse, granted: int, containers: Iterable[str]) -> PoolUse:
    """Return the use of a pool all of whose CPUs can be granted."""
    capacity = ONE_CPU * len(pool.cpus)
    return replace(
        pool,
        capacity=MilliCpus(capacity),
        granted=MilliCpus(granted),
        free=MilliCpus(max(capacity - granted, 0)),
        containers=tuple(containers),
    )
