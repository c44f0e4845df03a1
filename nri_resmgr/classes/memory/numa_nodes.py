"""Resolution of the nodes that a NUMA policy means for a container."""

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
    """CPUs and memory nodes of a container.

    Attributes:
        cpus: Its CPUs; empty for all online ones.
        mems: Its memory nodes; empty for all nodes with memory.
    """

    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES


class ResolvedPolicy(msgspec.Struct, frozen=True):
    """A policy in NRI's form.

    Attributes:
        mode: The mode as written.
        nodes: The resolved nodes; empty if the mode takes none.
        flags: The flags as written.
    """

    mode: PolicyMode
    nodes: NodeSet = NO_NODES
    flags: tuple[PolicyFlag, ...] = ()


def resolve_numa_policy(
    policy: NumaPolicy, place: MemoryPlace, machine: Machine, title: str
) -> ResolvedPolicy:
    """Resolve the nodes of a policy for a container.

    Words mean nodes with memory. A list is not changed: with
    ``MPOL_F_RELATIVE_NODES`` it numbers the container's nodes.

    Args:
        policy: A policy that `NumaPolicy.check` accepts.
        place: CPUs and memory nodes of the container.
        machine: The machine.
        title: The container, for messages.

    Raises:
        NoSuchNodes: A list has nodes that the machine does not have, or the container
            may use the memory of none of them: the kernel would refuse the policy, and
            then the runtime the container.

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
