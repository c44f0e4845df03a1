"""What balloons are made on: the machine and the settings, prepared for questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.balloons.settings import (
    BalloonsSettings,
    BalloonType,
    ShareLevel,
)
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, NodeSet


class Ground:
    """Answers about one machine under one document; never changes.

    Attributes:
        machine: What the CPUs are taken from.
        settings: What the policy is told to do.
    """

    def __init__(self, machine: Machine, settings: BalloonsSettings) -> None:
        self.machine: Final = machine
        self.settings: Final = settings

    def type_of(self, balloon: Balloon) -> BalloonType:
        """Return the template of a balloon."""
        return self.settings.by_name[balloon.type]

    def reach_of(self, kind: BalloonType, cpus: CpuSet) -> CpuSet:
        """Return where a balloon with these CPUs may use CPUs of no balloon."""
        if kind.share_idle is None:
            return NO_CPUS
        return around(self.machine, kind.share_idle, cpus) - self.machine.isolated


@lru_cache(maxsize=512)
def around(machine: Machine, level: ShareLevel, cpus: CpuSet) -> CpuSet:
    """Return all CPUs of the elements of a level that have any of *cpus*."""
    return CpuSet.union(
        element for element in elements(machine, level) if element.bits & cpus.bits
    )


@lru_cache(maxsize=16)
def elements(machine: Machine, level: ShareLevel) -> tuple[CpuSet, ...]:
    """Cut a machine into the elements of a level.

    Where nothing is known of caches, cores are what shares them.
    """
    cores = tuple(core.cpus for core in machine.cores)
    rows: Mapping[ShareLevel, Iterable[CpuSet]] = {
        ShareLevel.SYSTEM: (machine.online,),
        ShareLevel.PACKAGE: (one.cpus for one in machine.packages),
        ShareLevel.DIE: (one.cpus for one in machine.dies),
        ShareLevel.NUMA: (one.cpus for one in machine.nodes if one.cpus),
        ShareLevel.L2CACHE: (one.cpus for one in machine.caches_at(2)),
        ShareLevel.CORE: cores,
        ShareLevel.THREAD: (CpuSet.of(one.id) for one in machine.cpus),
    }
    return tuple(dict.fromkeys(rows[level])) or cores


@lru_cache(maxsize=1024)
def one_per_core(machine: Machine, cpus: CpuSet) -> CpuSet:
    """Leave the lowest of a set's threads in each core."""
    cores = (core.cpus & cpus for core in machine.cores)
    return CpuSet.from_iterable(mine.first for mine in cores if mine)


@lru_cache(maxsize=1024)
def memory_near(machine: Machine, cpus: CpuSet) -> NodeSet:
    """Return the nodes that CPUs belong to."""
    return machine.nodes_of(cpus)
