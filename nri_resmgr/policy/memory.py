"""Memory nodes near a set of CPUs."""

from __future__ import annotations

from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet


def nodes_near(cpus: CpuSet, machine: Machine) -> NodeSet:
    """Return the memory nodes that *cpus* should use.

    Returns:
        The CPUs' own nodes with memory, or the nearest ones. If all of these are
        movable, the nearest that are not are added: a process cannot start on
        movable memory alone. Empty only if no node has memory.
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
