"""The tree of pools: parts of the machine that CPUs and memory are granted from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.mems import MemoryLayout
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.topology import CacheKind, Core, Machine, MemoryKind
from nri_resmgr.values import CpuSet, NodeSet

_LAST_LEVEL: Final = 3


class MachinePart(msgspec.Struct, frozen=True):
    """A part of a machine, with a unique name, and the smaller disjoint parts in it.

    Some of its online CPUs may be in no smaller part.
    """

    name: str
    level: TreeLevel
    cpus: CpuSet
    inner: tuple[MachinePart, ...] = ()


def parts_of(machine: Machine) -> MachinePart:
    """Divide a machine into packages, dies, NUMA nodes and level 3 caches.

    Each part is in the smallest one that has all its CPUs: NUMA nodes can be around
    packages, as in virtual machines, or inside of them. A level that would not divide
    anything is left out. Also left out are

    * packages of one core each that share the memory of a node, and level 3 caches of
      one core each;
    * dies, if each has one cluster of cores only, or if they share the memory of
      one of several nodes, which then divide the package instead. A core of which
      the kernel knows no cluster counts as one: on x86 a cluster is what shares a
      level 2 cache;
    * NUMA nodes without memory, and those that reach out of a package or die;
    * level 3 caches that reach out of a node, die or package, and all where
      something coarser divides the same part already.

    Source:
        nri-plugins, topology-aware, ``pools.go``: the same levels and names.
    """
    packages = tuple(_package(machine, key) for key in range(len(machine.packages)))
    if len(packages) == 1:
        return packages[0]
    inner = packages
    if has_nodes_around_packages(machine):
        inner = _nodes_around(machine, packages)
    return MachinePart("root", TreeLevel.SYSTEM, machine.online, inner)


def has_nodes_around_packages(machine: Machine) -> bool:
    """Return whether a NUMA node has CPUs of several packages."""
    packages = [package.cpus for package in machine.packages]
    return any(
        sum(not one.isdisjoint(cpus) for one in packages) > 1
        for cpus in machine.node_cpus
    )


def memory_at(machine: Machine) -> Mapping[int, NodeSet]:
    """Return the memory nodes that belong to each node with CPUs, possibly none.

    These are the node itself, and nodes without CPUs that are nearest to it. Distance
    is that from the CPUs: firmware may report another one for the opposite direction.
    """
    hosts = machine.cpu_nodes
    found = {host: NodeSet.of(host) & machine.memory_nodes for host in hosts}
    for node in machine.memory_nodes - hosts:
        far = {host: machine.distance(host, node) for host in hosts}
        nearest = min(far.values())
        for host, distance in far.items():
            if distance == nearest:
                found[host] |= NodeSet.of(node)
    return found


def _nodes_around(
    machine: Machine, packages: Sequence[MachinePart]
) -> tuple[MachinePart, ...]:
    """Return the parts of a machine of which nodes have several packages."""
    if all(len(_cores_of(machine, one.cpus)) == 1 for one in packages):
        return _inner(machine, "root", machine.online)
    parts: list[MachinePart] = []
    left = list(packages)
    for node in _nodes(machine, machine.online):
        inside = tuple(one for one in left if one.cpus <= node.cpus)
        if len(inside) > 1:
            parts.append(replace(node, inner=inside))
            left = [one for one in left if one not in inside]
    return (*parts, *left)


def _cores_of(machine: Machine, cpus: CpuSet) -> list[Core]:
    return [core for core in machine.cores if core.cpus <= cpus]


def _package(machine: Machine, place: int) -> MachinePart:
    package = machine.packages[place]
    name, level = f"socket #{package.id}", TreeLevel.PACKAGE
    inner = _dies(machine, package.id) or _inner(machine, name, package.cpus)
    return MachinePart(name, level, package.cpus, inner)


def _dies(machine: Machine, package: int) -> tuple[MachinePart, ...]:
    cores = [core for core in machine.cores if core.package == package]
    dies = [die for die in machine.dies if die.package == package]
    if len(dies) == 1 or not _has_clusters(cores) or _share_a_node(machine, cores):
        return ()
    names = [f"die #{package}/{die.id}" for die in dies]
    return tuple(
        MachinePart(name, TreeLevel.DIE, die.cpus, _inner(machine, name, die.cpus))
        for name, die in zip(names, dies, strict=True)
    )


def _has_clusters(cores: Sequence[Core]) -> bool:
    """Return whether any die has several clusters."""
    dies = {core.die for core in cores}
    clusters = {
        (core.die, core.cpus.first if core.cluster is None else -1 - core.cluster)
        for core in cores
    }
    return len(clusters) > len(dies)


def _share_a_node(machine: Machine, cores: Sequence[Core]) -> bool:
    """Return whether one of several nodes has memory for more than one die."""
    dies_of: dict[int, set[int]] = {}
    for core in cores:
        node = machine.node_of(core.cpus.first)
        dies_of.setdefault(node.id, set()).add(core.die)
    return len(dies_of) > 1 and any(
        len(dies) > 1 and machine.node(node).memory for node, dies in dies_of.items()
    )


def _inner(machine: Machine, name: str, cpus: CpuSet) -> tuple[MachinePart, ...]:
    return _nodes(machine, cpus) or _caches(machine, name, cpus)


def _nodes(machine: Machine, cpus: CpuSet) -> tuple[MachinePart, ...]:
    here = [node for node in machine.nodes if node.cpus & cpus]
    if len({node.cpus for node in here}) == 1:
        return ()
    parts, seen = [], set[CpuSet]()
    for node in here:
        # Nodes of emulated NUMA have the same CPUs, and are one part.
        if node.memory and node.cpus <= cpus and node.cpus not in seen:
            seen.add(node.cpus)
            name = f"NUMA node #{node.id}"
            inner = _caches(machine, name, node.cpus)
            parts.append(MachinePart(name, TreeLevel.NUMA, node.cpus, inner))
    return tuple(parts)


def _caches(machine: Machine, outer: str, cpus: CpuSet) -> tuple[MachinePart, ...]:
    last = machine.caches_at(_LAST_LEVEL)
    caches = [cache for cache in last if cache.kind is not CacheKind.INSTRUCTION]
    # Without ids from the kernel, caches are numbered in order.
    counted = any(cache.id is None for cache in caches)
    numbers = [place if counted else one.id for place, one in enumerate(caches)]
    inside = [
        MachinePart(f"{outer}/L3 cache #{number}", TreeLevel.L3, cache.cpus)
        for number, cache in zip(numbers, caches, strict=True)
        if cache.cpus <= cpus
    ]
    is_useful = any(len(_cores_of(machine, one.cpus)) > 1 for one in inside)
    return tuple(inside) if len(inside) > 1 and is_useful else ()


class Pool(msgspec.Struct, frozen=True):
    """A part of the machine, with its CPUs and memory nodes.

    Attributes:
        id: Its index in the tree's tuple; children come before their parents.
        name: Such as ``NUMA node #1``; unique, and stable over restarts.
        level: The level of the machine that it represents.
        depth: Its distance from the root.
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


# Compared by identity since it is a key of caches: comparing contents would take longer
# than the caches save.
class PoolTree(msgspec.Struct, frozen=True, eq=False, dict=True):
    """All pools of a machine, by id; the root is the last one."""

    machine: Machine
    pools: tuple[Pool, ...]

    @classmethod
    def of(cls, machine: Machine, available: CpuSet, reserved: CpuSet) -> PoolTree:
        """Build the tree; `parts_of` documents which pools there are.

        Offline CPUs of *available* are ignored. Reserved CPUs may be isolated.
        """
        return cls(machine, _PoolBuilder(machine, available, reserved).pools())

    @property
    def root(self) -> Pool:
        """The pool of the whole machine."""
        return self.pools[-1]

    def smallest_with(self, cpus: CpuSet) -> Pool:
        """Return the smallest pool with all online CPUs of *cpus*."""
        there = cpus & self.root.cpus
        return next(pool for pool in self.pools if there <= pool.cpus)

    @cached_property
    def memory(self) -> MemoryLayout:
        """The machine's memory; one object, since it is a key of caches."""
        return MemoryLayout.of(self.machine)

    @cached_property
    def above(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a pool's id and that of its parent; children come first."""
        return tuple((pool.id, pool.path[1]) for pool in self.pools[:-1])

    @cached_property
    def below(self) -> tuple[tuple[int, int], ...]:
        """The same pairs; parents come first."""
        return self.above[::-1]

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The depth of each pool, by id."""
        return tuple(pool.depth for pool in self.pools)

    @cached_property
    def levels(self) -> tuple[TreeLevel, ...]:
        """All levels, from the coarsest on, as they would be nested here."""
        levels = list(TreeLevel)
        if has_nodes_around_packages(self.machine):
            levels.remove(TreeLevel.NUMA)
            levels.insert(levels.index(TreeLevel.PACKAGE), TreeLevel.NUMA)
        return tuple(levels)

    @cached_property
    def sharable(self) -> tuple[int, ...]:
        """The CPUs of each pool that may be shared, as a mask, by id."""
        return tuple(pool.sharable.bits for pool in self.pools)

    def named(self, name: str) -> Pool | None:
        """Return the pool with this name, if any."""
        return self._by_name.get(name)

    def level_or_coarser(self, level: TreeLevel) -> TreeLevel:
        """Return *level* if any pool has it, else the next coarser level with pools.

        A level above the root's becomes the root's.
        """
        return self._coarser[level]

    def nodes_of(self, pool: Pool, kinds: frozenset[MemoryKind]) -> NodeSet:
        """Return the memory nodes of *pool* that are of *kinds*."""
        return pool.nodes & NodeSet.union(self._of_kind[kind] for kind in kinds)

    def kinds_in(self, pool: Pool) -> frozenset[MemoryKind]:
        """Return the kinds of memory that *pool* has."""
        return self._kinds[pool.id]

    @cached_property
    def _of_kind(self) -> Mapping[MemoryKind, NodeSet]:
        return {kind: self.machine.nodes_of_kind(kind) for kind in MemoryKind}

    @cached_property
    def _kinds(self) -> tuple[frozenset[MemoryKind], ...]:
        return tuple(
            frozenset(kind for kind in MemoryKind if pool.nodes & self._of_kind[kind])
            for pool in self.pools
        )

    @cached_property
    def _by_name(self) -> Mapping[str, Pool]:
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def _coarser(self) -> Mapping[TreeLevel, TreeLevel]:
        there, found = {pool.level for pool in self.pools}, self.root.level
        coarser = {}
        for level in self.levels:
            coarser[level] = found = level if level in there else found
        return coarser


class _PoolBuilder:
    """Turns the parts of a machine into pools with ids, children first."""

    def __init__(self, machine: Machine, available: CpuSet, reserved: CpuSet) -> None:
        self._machine = machine
        self._reserved = reserved & available
        self._isolated = machine.isolated & available - reserved
        self._sharable = available - reserved - machine.isolated
        self._memory = memory_at(machine)
        self._next = 0

    def pools(self) -> tuple[Pool, ...]:
        root = parts_of(self._machine)
        return tuple(self._pools_of(root, (), self._machine.memory_nodes))

    def _pools_of(
        self, part: MachinePart, above: tuple[int, ...], outer: NodeSet
    ) -> list[Pool]:
        nodes = self._nodes(part.cpus, outer) if above else outer
        # Ids are assigned to the inner parts first.
        number = self._next + _size(part) - 1
        path = (number, *above)
        inside = [
            pool for inner in part.inner for pool in self._pools_of(inner, path, nodes)
        ]
        self._next = number + 1
        pool = Pool(
            id=number,
            name=part.name,
            level=part.level,
            depth=len(above),
            cpus=part.cpus,
            isolated=part.cpus & self._isolated,
            reserved=part.cpus & self._reserved,
            sharable=part.cpus & self._sharable,
            nodes=nodes,
            path=path,
            subtree=(*(one.id for one in inside), number),
        )
        return [*inside, pool]

    def _nodes(self, cpus: CpuSet, outer: NodeSet) -> NodeSet:
        machine = self._machine
        near = NodeSet.union(self._memory[node] for node in machine.nodes_of(cpus))
        # A part without memory uses the nearest inside its parent, or all of that.
        return near or machine.nearest_memory(cpus) & outer or outer


def _size(part: MachinePart) -> int:
    return 1 + sum(map(_size, part.inner))
