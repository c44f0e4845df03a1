"""The machine and the settings that balloons are made on, with cached lookups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.balloons.settings import (
    BalloonsSettings,
    BalloonType,
    ShareLevel,
)
from nri_resmgr.policy.balloons.state import Balloon, Membership
from nri_resmgr.policy.mems import MemoryLayout
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet


class BalloonsContext:
    """One machine and the settings of the policy on it; never changes.

    Attributes:
        memory: The machine's memory; one object, since caches compare it by identity.
        kinds: The kinds of memory that the machine has.
        threads: The first threads of all cores, then the second ones, and so on.
    """

    # Caches belong to the instance: as a key of a module's cache, the whole machine
    # would be hashed, which takes longer than a decision.

    def __init__(self, machine: Machine, settings: BalloonsSettings) -> None:
        self.machine: Final = machine
        self.settings: Final = settings
        self.memory: Final = MemoryLayout.of(machine)
        self.kinds: Final = frozenset(one.kind for one in machine.nodes if one.memory)
        self.threads: Final = tuple(_threads(machine))
        self.elements: Final = lru_cache(maxsize=16)(self._elements)
        self.around: Final = lru_cache(maxsize=1024)(self._around)
        self.one_per_core: Final = lru_cache(maxsize=1024)(machine.first_threads)
        self.nodes_of: Final = lru_cache(maxsize=1024)(machine.nodes_of)

    def type_of(self, balloon: Balloon) -> BalloonType:
        """Return the template of a balloon."""
        return self.settings.by_name[balloon.type]

    def reach_of(self, kind: BalloonType, cpus: CpuSet) -> CpuSet:
        """Return where a balloon with *cpus* may use idle CPUs, those in no balloon."""
        if kind.share_idle is None:
            return NO_CPUS
        return self.around(kind.share_idle, cpus) - self.machine.isolated

    def visible(self, cpus: CpuSet, membership: Membership) -> CpuSet:
        """Return the CPUs without the threads that are hidden from a container."""
        return self.one_per_core(cpus) if membership.hidden else cpus

    def _around(self, level: ShareLevel, cpus: CpuSet) -> CpuSet:
        """Return all CPUs of the elements of a level that have any of *cpus*."""
        return CpuSet.union(
            element for element in self.elements(level) if element.bits & cpus.bits
        )

    def _elements(self, level: ShareLevel) -> tuple[CpuSet, ...]:
        """Divide the machine's CPUs into the elements of a level.

        Without data about caches, each core counts as one that has its own.
        """
        machine = self.machine
        cores = tuple(core.cpus for core in machine.cores)
        rows: Mapping[ShareLevel, Iterable[CpuSet]] = {
            ShareLevel.SYSTEM: (machine.online,),
            ShareLevel.PACKAGE: (one.cpus for one in machine.packages),
            ShareLevel.DIE: (one.cpus for one in machine.dies),
            ShareLevel.NUMA: machine.node_cpus,
            ShareLevel.L2CACHE: (one.cpus for one in machine.caches_at(2)),
            ShareLevel.CORE: cores,
            ShareLevel.THREAD: (CpuSet.of(one.id) for one in machine.cpus),
        }
        return tuple(dict.fromkeys(rows[level])) or cores


def _threads(machine: Machine) -> Iterator[CpuSet]:
    """Yield the lowest threads of all cores, then the next ones, and so on."""
    left = [core.cpus for core in machine.cores]
    while left:
        lowest = CpuSet.from_iterable(cpus.first for cpus in left)
        yield lowest
        left = [rest for cpus in left if (rest := cpus - lowest)]
