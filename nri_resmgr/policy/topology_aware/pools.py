"""The tree of pools: parts of the machine that containers are granted CPUs from."""

from __future__ import annotations

import attrs

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.values import CpuSet, NodeSet


@attrs.frozen(eq=False, repr=False)
class Pool:
    """A part of the machine, with what may be granted from it.

    Attributes:
        id: Its place in the tree's tuple; children come before their parents.
        name: For people, such as ``NUMA node #1``; unique, the same after a restart.
        level: What it follows.
        depth: How far it is from the root.
        cpus: All online CPUs of the part, available or not.
        isolated: Its available CPUs that ``isolcpus=`` names, reserved ones left out.
        reserved: Its reserved CPUs.
        sharable: Its other available CPUs.
        nodes: Its memory nodes, of all kinds.
        path: Ids from itself up to the root.
        subtree: Ids of itself and of all pools below, children first.
    """

    id: int
    name: str
    level: TreeLevel
    depth: int
    cpus: CpuSet
    isolated: CpuSet
    reserved: CpuSet
    sharable: CpuSet
    nodes: NodeSet
    path: tuple[int, ...]
    subtree: tuple[int, ...]

    @property
    def parent(self) -> int | None:
        """The id of the pool above; None for the root."""
        return self.path[1] if len(self.path) > 1 else None

    @property
    def is_leaf(self) -> bool:
        """Whether no pool is below."""
        return len(self.subtree) == 1


@attrs.frozen(eq=False, repr=False)
class PoolTree:
    """All pools of a machine.

    Attributes:
        machine: What the tree follows.
        pools: By id; the root is the last one.
    """

    machine: Machine
    pools: tuple[Pool, ...]

    @property
    def root(self) -> Pool:
        """The pool with everything in it."""
        return self.pools[-1]

    def nodes_of(self, pool: Pool, kinds: frozenset[MemoryKind]) -> NodeSet:
        """Return the memory nodes of *pool* that are of *kinds*."""
        wanted = NodeSet.union(self.machine.nodes_of_kind(kind) for kind in kinds)
        return pool.nodes & wanted
