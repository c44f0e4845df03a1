"""The kubelet's static CPU manager and topology manager, by their documented rules.

The rules of Kubernetes' documentation ("Control CPU Management Policies on the Node",
"Control Topology Management Policies on a node") and KEP-3570, KEP-693:

* A Guaranteed container of whole CPUs gets these for itself. All others share the rest,
  and are updated after each change. The reserved CPUs, the lowest ones, are never given
  away.
* Each set of NUMA nodes that could hold the container is a hint; those with the fewest
  nodes that the machine would need when empty are preferred.
* ``best-effort`` takes the narrowest set of nodes with room, preferred or not, or does
  without; ``single-numa-node`` refuses a container that no single node has room for.
* In the chosen nodes whole NUMA nodes or sockets come first where the container needs
  so many CPUs, then whole cores, then single CPUs; of equal ones those with the fewest
  free CPUs around them, then the lowest.

The memory manager is off, as it is by default: memory may come from any node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.quality.life import RESERVED, Arrival
from tests.quality.node import Place

BEST_EFFORT: Final = "best-effort"
SINGLE_NUMA_NODE: Final = "single-numa-node"


class KubeletNode:
    """A node whose kubelet manages CPUs.

    Args:
        policy: Of the topology manager.
    """

    def __init__(self, machine: Machine, policy: str) -> None:
        self._machine, self._policy = machine, policy
        self._reserved = CpuSet.from_iterable(sorted(machine.online)[:RESERVED])
        self._own: dict[int, CpuSet] = {}
        self._sharing: set[int] = set()

    def create(self, one: Arrival) -> bool:
        """See `Placer.create`."""
        if not one.exclusive:
            self._sharing.add(one.number)
            return True
        nodes = self._aligned(one.exclusive)
        if nodes is None:
            return False
        free = self._free()
        if len(free) < one.exclusive:
            return False
        inside = free & self._cpus_of(nodes)
        taken = self._take(inside, min(len(inside), one.exclusive))
        taken |= self._take(free - taken, one.exclusive - len(taken))
        self._own[one.number] = taken
        return True

    def stop(self, one: Arrival) -> None:
        """See `Placer.stop`."""
        self._own.pop(one.number, None)
        self._sharing.discard(one.number)

    def places(self) -> Mapping[int, Place]:
        """See `Placer.places`."""
        shared = self._shared()
        own = {number: Place(cpus, cpus) for number, cpus in self._own.items()}
        return own | dict.fromkeys(self._sharing, Place(shared, NO_CPUS))

    def _shared(self) -> CpuSet:
        return self._machine.online - CpuSet.union(self._own.values())

    def _free(self) -> CpuSet:
        return self._shared() - self._reserved

    def _cpus_of(self, nodes: Iterable[int]) -> CpuSet:
        return CpuSet.union(self._machine.node_cpus[node] for node in nodes)

    def _aligned(self, count: int) -> tuple[int, ...] | None:
        """Return the NUMA nodes to align with, by index; None to refuse."""
        hints = tuple(self._hints(count))
        if self._policy == SINGLE_NUMA_NODE:
            return next((one for one in hints if len(one) == 1), None)
        # All nodes where no set has room; else the preferred or narrowest, which comes
        # first: preferred ones are those with the fewest nodes.
        return hints[0] if hints else tuple(range(len(self._machine.node_cpus)))

    def _hints(self, count: int) -> Iterator[tuple[int, ...]]:
        """Yield sets of nodes that have so many free CPUs, the narrowest first."""
        free, nodes = self._free(), range(len(self._machine.node_cpus))
        for size in range(1, len(nodes) + 1):
            for some in itertools.combinations(nodes, size):
                if len(free & self._cpus_of(some)) >= count:
                    yield some

    def _take(self, free: CpuSet, count: int) -> CpuSet:
        """Choose CPUs of *free*: whole nodes, whole cores, then single CPUs."""
        taken = NO_CPUS
        packages = [one.cpus for one in self._machine.packages]
        cores = [one.cpus for one in self._machine.cores]
        for units in (self._machine.node_cpus, packages, self._around(cores, free)):
            for unit in units:
                if unit <= free - taken and len(unit) <= count - len(taken):
                    taken |= unit
        for core in self._around(cores, free - taken):
            rest = sorted(core & (free - taken))
            taken |= CpuSet.from_iterable(rest[: count - len(taken)])
        return taken

    def _around(self, cores: Iterable[CpuSet], free: CpuSet) -> list[CpuSet]:
        """Order cores: the fullest package, then the fullest core, first."""

        def rank(core: CpuSet) -> tuple[int, int, int]:
            package = self._machine.package_of(min(core)).cpus
            return len(package & free), len(core & free), min(core)

        return sorted((one for one in cores if one & free), key=rank)
