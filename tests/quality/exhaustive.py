"""Each container on the best of all sets of CPUs, found by trying all of them.

A bound for what a policy can do that moves no exclusive CPUs and knows nothing of what
will come. For small machines only: of 15 free CPUs there are 6,435 sets of 7.
"""

from __future__ import annotations

import itertools
from typing import Final

from nri_resmgr.values import CpuSet, NodeSet
from tests.quality.shared_pool import SharedPoolNode

MOST_CPUS: Final = 16
"""Of machines that it is for."""


class ExhaustiveNode(SharedPoolNode):
    """A node whose exclusive CPUs are the best ones for each container in its turn."""

    def choose(self, free: CpuSet, count: int) -> CpuSet:
        """See `SharedPoolNode.choose`."""
        sets = map(CpuSet.from_iterable, itertools.combinations(sorted(free), count))
        return min(sets, key=lambda cpus: self._cost(cpus, free - cpus))

    def mems_of(self, cpus: CpuSet) -> NodeSet:
        """See `SharedPoolNode.mems_of`."""
        return self.machine.nodes_of(cpus)

    def _cost(self, cpus: CpuSet, left: CpuSet) -> tuple[int, ...]:
        """Return nodes, cores that others use, and cores; then the room of a node."""
        nodes = [node & left for node in self.machine.node_cpus]
        touched = sum(1 for node in self.machine.node_cpus if node & cpus)
        cores = [one.cpus for one in self.machine.cores if one.cpus & cpus]
        split = sum(1 for core in cores if core - cpus)
        return touched, split, len(cores), -max(map(len, nodes)), *sorted(cpus)
