"""Which nodes a NUMA policy means for a container on this machine."""

from __future__ import annotations

import msgspec

from nri_resmgr.classes.memory.errors import NoSuchNodes
from nri_resmgr.classes.memory.numa_values import (
    MAX_DIST,
    NodeWord,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet


class MemoryPlace(msgspec.Struct, frozen=True):
    """Where a container is.

    Attributes:
        cpus: Its CPUs; none for all online ones.
        mems: Its memory nodes; none for all that have memory.
    """

    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES


class ResolvedPolicy(msgspec.Struct, frozen=True):
    """A policy as NRI takes it.

    Attributes:
        mode: As written.
        nodes: The nodes that were meant; none where the mode takes none.
        flags: As written.
    """

    mode: PolicyMode
    nodes: NodeSet = NO_NODES
    flags: tuple[PolicyFlag, ...] = ()


def resolve_numa_policy(
    policy: NumaPolicy, place: MemoryPlace, machine: Machine, title: str
) -> ResolvedPolicy:
    """Work out which nodes a policy means for a container.

    Words mean nodes with memory. A list is taken as it is: with
    ``MPOL_F_RELATIVE_NODES`` it counts among the container's nodes.

    Args:
        policy: One that `NumaPolicy.check` accepts.
        place: Where the container is.
        machine: The nodes and their distances.
        title: The container, for people.

    Raises:
        NoSuchNodes: A list has nodes that the machine has not, or none of the nodes
            meant has memory that the container may use: the kernel would refuse the
            policy, and the runtime the container.

    Source:
        Linux, mm/mempolicy.c, ``mpol_set_nodemask``: an empty set is refused after
        the nodes are cut to those of the cpuset.
    """
    if not policy.nodes:
        return ResolvedPolicy(policy.mode, NO_NODES, policy.flags)
    meant = _meant(policy.nodes, place, machine)
    if PolicyFlag.RELATIVE_NODES not in policy.flags:
        if not meant <= machine.node_ids:
            why = f"the machine has {machine.node_ids}"
            raise NoSuchNodes(title, policy.nodes, meant, why)
        allowed = (place.mems or machine.memory_nodes) & machine.memory_nodes
        if meant.isdisjoint(allowed):
            why = f"the container may use the memory of {allowed or 'none'}"
            raise NoSuchNodes(title, policy.nodes, meant, why)
    return ResolvedPolicy(policy.mode, meant, policy.flags)


def _meant(nodes: str, place: MemoryPlace, machine: Machine) -> NodeSet:
    cpus = (place.cpus or machine.online) & machine.online
    with_memory = machine.memory_nodes
    match nodes:
        case NodeWord.ALL:
            return with_memory
        case NodeWord.ALLOWED:
            return (place.mems or with_memory) & with_memory
        case NodeWord.CPUS:
            return machine.nodes_of(cpus) & with_memory
        case NodeWord.PACKAGES:
            packages = (package.cpus for package in machine.packages)
            near = CpuSet.union(one for one in packages if one & cpus)
            return machine.nodes_of(near) & with_memory
        case _ if nodes.startswith(MAX_DIST):
            farthest = int(nodes.removeprefix(MAX_DIST))
            own = machine.nodes_of(cpus)
            return NodeSet.from_iterable(
                to
                for to in with_memory
                if any(machine.distance(here, to) <= farthest for here in own)
            )
        case _:
            return NodeSet.parse(nodes)
