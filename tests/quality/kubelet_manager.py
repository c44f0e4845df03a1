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
from collections.abc import Iterable, Iterator
from typing import Final

from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.quality.shared_pool import SharedPoolNode

BEST_EFFORT: Final = "best-effort"
SINGLE_NUMA_NODE: Final = "single-numa-node"


class KubeletNode(SharedPoolNode):
    """A node whose kubelet manages CPUs.

    Args:
        policy: Of the topology manager.
    """

    def __init__(self, machine: Machine, policy: str) -> None:
        super().__init__(machine)
        self._policy = policy

    def choose(self, free: CpuSet, count: int) -> CpuSet:
        """See `SharedPoolNode.choose`."""
        nodes = self._aligned(free, count)
        if nodes is None:
            return NO_CPUS
        inside = free & self._cpus_of(nodes)
        taken = self._take(inside, min(len(inside), count))
        return taken | self._take(free - taken, count - len(taken))

    def _cpus_of(self, nodes: Iterable[int]) -> CpuSet:
        return CpuSet.union(self.machine.node_cpus[node] for node in nodes)

    def _aligned(self, free: CpuSet, count: int) -> tuple[int, ...] | None:
        """Return the NUMA nodes to align with, by index; None to refuse."""
        hints = tuple(self._hints(free, count))
        if self._policy == SINGLE_NUMA_NODE:
            return next((one for one in hints if len(one) == 1), None)
        # All nodes where no set has room; else the preferred or narrowest, which comes
        # first: preferred ones are those with the fewest nodes.
        return hints[0] if hints else tuple(range(len(self.machine.node_cpus)))

    def _hints(self, free: CpuSet, count: int) -> Iterator[tuple[int, ...]]:
        """Yield sets of nodes that have so many free CPUs, the narrowest first."""
        nodes = range(len(self.machine.node_cpus))
        for size in range(1, len(nodes) + 1):
            for some in itertools.combinations(nodes, size):
                if len(free & self._cpus_of(some)) >= count:
                    yield some

    def _take(self, free: CpuSet, count: int) -> CpuSet:
        """Choose CPUs of *free*: whole nodes, whole cores, then single CPUs."""
        taken = NO_CPUS
        packages = [one.cpus for one in self.machine.packages]
        cores = [one.cpus for one in self.machine.cores]
        for units in (self.machine.node_cpus, packages, self._around(cores, free)):
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
            package = self.machine.package_of(min(core)).cpus
            return len(package & free), len(core & free), min(core)

        return sorted((one for one in cores if one & free), key=rank)
