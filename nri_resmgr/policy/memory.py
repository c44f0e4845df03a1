"""Memory nodes for a set of CPUs."""

from __future__ import annotations

from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet


def nodes_near(cpus: CpuSet, machine: Machine) -> NodeSet:
    """Return the memory nodes that *cpus* should use.

    Returns:
        The CPUs' own nodes with memory, or the nearest ones. Where the kernel
        may use none of these for itself, the nearest nodes that it may use come
        on top: a process without such a node cannot start. Empty only where no
        node has memory.
    """
    near = machine.nearest_memory(cpus)
    if not near or near & machine.normal_nodes:
        return near
    far = {
        to: min(machine.distance(here, to) for here in near)
        for to in machine.normal_nodes
    }
    closest = min(far.values(), default=0)
    return near | NodeSet.from_iterable(to for to in far if far[to] == closest)
