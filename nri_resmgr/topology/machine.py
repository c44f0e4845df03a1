"""The model of a machine: its CPUs, memory, caches, devices and their distances."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec

from nri_resmgr.topology.checks import (
    check_cores,
    check_distances,
    check_nodes,
    check_sets,
)
from nri_resmgr.topology.cores import Cache, Cluster, Core, CoreKind, Cpu, Die, Package
from nri_resmgr.topology.memory import MemoryKind, Node
from nri_resmgr.topology.platform import CgroupLayout, Device, Rdt, Uncore
from nri_resmgr.topology.speed_select import Punit, check_punits
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet, StoredValue

# Marks an omitted field; an explicit empty set is an error, so by identity.
_ONLINE: Final = CpuSet()


class Machine(StoredValue, frozen=True, dict=True):
    """A machine, as its kernel described it at one moment.

    Fields are independent of each other; everything else is derived from them on
    first use and cannot contradict them. Only online CPUs have a core, die and
    package: the kernel discards the topology of an offline CPU.

    Attributes:
        cores: By lowest CPU.
        cpus: By id; one for every online CPU.
        nodes: By id. Their CPUs are all the online ones. Two nodes have no CPU in
            common or, where NUMA is emulated, the same ones.
        caches: By level, kind, then lowest CPU.
        distances: One row per node in the order of `nodes`, as the firmware
            reports them: 10 is local, and a pair need not be symmetric.
        present: CPUs that are plugged in, online or not; by default the online ones.
        isolated: Online CPUs taken from the scheduler by ``isolcpus=``.
        devices: Hardware devices by kind, then name.
        uncore: Uncore frequency domains by name.
        rdt: What resctrl offers; None where it is not mounted.
        cgroup: How cgroups are mounted; None where they are not.
        has_speed_select: Whether the driver of Intel Speed Select is loaded.
        speed_select: Its power units by package and number; empty if it reports none
            or the process may not read them.

    Raises:
        ContradictoryMachine: The fields contradict each other.
    """

    cores: tuple[Core, ...]
    cpus: tuple[Cpu, ...]
    nodes: tuple[Node, ...]
    distances: tuple[tuple[int, ...], ...]
    caches: tuple[Cache, ...] = ()
    present: CpuSet = _ONLINE
    isolated: CpuSet = NO_CPUS
    devices: tuple[Device, ...] = ()
    uncore: tuple[Uncore, ...] = ()
    rdt: Rdt | None = None
    cgroup: CgroupLayout | None = None
    has_speed_select: bool = False
    speed_select: tuple[Punit, ...] = ()

    def __post_init__(self) -> None:
        if self.present is _ONLINE:
            msgspec.structs.force_setattr(self, "present", self.online)
        online = check_cores(self.cores, self.cpus)
        check_nodes(self.nodes, online)
        check_distances(self.nodes, self.distances)
        check_sets(online, self.present, self.isolated, self.caches)
        check_punits(self.speed_select, online)

    @cached_property
    def online(self) -> CpuSet:
        """CPUs that the kernel can schedule on."""
        return CpuSet.union(core.cpus for core in self.cores)

    @property
    def offline(self) -> CpuSet:
        """CPUs that are plugged in and not online."""
        return self.present - self.online

    @cached_property
    def packages(self) -> tuple[Package, ...]:
        """Packages by id."""
        ids = sorted({core.package for core in self.cores})
        return tuple(
            Package(key, _cpus(c for c in self.cores if c.package == key))
            for key in ids
        )

    @cached_property
    def dies(self) -> tuple[Die, ...]:
        """Dies by package, then id; at least one per package."""
        keys = sorted({(core.package, core.die) for core in self.cores})
        return tuple(
            Die(*key, _cpus(c for c in self.cores if (c.package, c.die) == key))
            for key in keys
        )

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """Clusters by package, die, then id; none if the kernel reports none."""
        groups: dict[tuple[int, int, int], CpuSet] = {}
        for core in self.cores:
            if core.cluster is not None:
                key = (core.package, core.die, core.cluster)
                groups[key] = groups.get(key, NO_CPUS) | core.cpus
        return tuple(Cluster(*key, groups[key]) for key in sorted(groups))

    @cached_property
    def kinds(self) -> tuple[CoreKind, ...]:
        """The kinds of core that the machine has, in the order of `CoreKind`."""
        found = {core.kind for core in self.cores}
        return tuple(kind for kind in CoreKind if kind in found)

    def cpus_of_kind(self, kind: CoreKind) -> CpuSet:
        """Return the online CPUs of cores of *kind*."""
        return _cpus(core for core in self.cores if core.kind is kind)

    def caches_at(self, level: int) -> tuple[Cache, ...]:
        """Return the caches of *level*, by kind, then lowest CPU."""
        return tuple(cache for cache in self.caches if cache.level == level)

    def cpu(self, number: int) -> Cpu:
        """Return the online CPU *number*; another number is a ``KeyError``."""
        return self._cpu_by_id[number]

    def core_of(self, cpu: int) -> Core:
        """Return the core of an online CPU; another number is a ``KeyError``."""
        return self._core_by_cpu[cpu]

    def die_of(self, cpu: int) -> Die:
        """Return the die of an online CPU; another number is a ``KeyError``."""
        return self._die_by_cpu[cpu]

    def package_of(self, cpu: int) -> Package:
        """Return the package of an online CPU; another number is a ``KeyError``."""
        return self._package_by_cpu[cpu]

    def node_of(self, cpu: int) -> Node:
        """Return the lowest node of an online CPU; another number is a ``KeyError``."""
        return self._node_by_cpu[cpu]

    def node(self, number: int) -> Node:
        """Return the node with this id; an unknown one is a ``KeyError``."""
        return self.nodes[self._place[number]]

    def distance(self, a: int, b: int) -> int:
        """Return how far node *b* is from node *a*; 10 is the distance to itself."""
        return self.distances[self._place[a]][self._place[b]]

    @cached_property
    def node_ids(self) -> NodeSet:
        """All nodes, with or without CPUs and memory."""
        return NodeSet.from_iterable(node.id for node in self.nodes)

    @cached_property
    def cpu_nodes(self) -> NodeSet:
        """Nodes with online CPUs."""
        return NodeSet.from_iterable(node.id for node in self.nodes if node.cpus)

    @cached_property
    def node_cpus(self) -> tuple[CpuSet, ...]:
        """The CPUs of nodes with CPUs, by node id; each set once."""
        return tuple(dict.fromkeys(node.cpus for node in self.nodes if node.cpus))

    @cached_property
    def memory_nodes(self) -> NodeSet:
        """Nodes with memory."""
        return NodeSet.from_iterable(node.id for node in self.nodes if node.memory)

    @cached_property
    def normal_nodes(self) -> NodeSet:
        """Nodes with memory that the kernel itself may use."""
        return NodeSet.from_iterable(node.id for node in self.nodes if node.is_normal)

    def nodes_of_kind(self, kind: MemoryKind) -> NodeSet:
        """Return the nodes whose memory is of *kind*."""
        return NodeSet.from_iterable(
            node.id for node in self.nodes if node.memory and node.kind is kind
        )

    def nodes_of(self, cpus: CpuSet) -> NodeSet:
        """Return the nodes that any of *cpus* belongs to."""
        return NodeSet.from_iterable(
            node.id for node in self.nodes if not node.cpus.isdisjoint(cpus)
        )

    def cpus_of(self, nodes: NodeSet) -> CpuSet:
        """Return the online CPUs of *nodes*."""
        return CpuSet.union(node.cpus for node in self.nodes if node.id in nodes)

    def first_threads(self, cpus: CpuSet, preferred: CpuSet = NO_CPUS) -> CpuSet:
        """Return one thread of each core that *cpus* has any of.

        It is the lowest, of the *preferred* ones where there are any.
        """
        cores = (core.cpus & cpus for core in self.cores)
        return CpuSet.from_iterable(
            (mine & preferred or mine).first for mine in cores if mine
        )

    def nearest_memory(self, cpus: CpuSet) -> NodeSet:
        """Return the memory nodes that *cpus* should use; none for no CPUs.

        The nodes of the CPUs that have memory. If none has, all memory nodes at the
        smallest distance from any of them.
        """
        local = self.nodes_of(cpus)
        return local & self.memory_nodes or self.nearest(local, self.memory_nodes)

    def nearest(self, start: NodeSet, among: NodeSet) -> NodeSet:
        """Return those of some nodes at the smallest distance from any of *start*."""
        if not start:
            return NO_NODES
        near = {to: min(self.distance(a, to) for a in start) for to in among}
        closest = min(near.values(), default=0)
        return NodeSet.from_iterable(to for to, far in near.items() if far == closest)

    @cached_property
    def _place(self) -> dict[int, int]:
        return {node.id: place for place, node in enumerate(self.nodes)}

    @cached_property
    def _cpu_by_id(self) -> dict[int, Cpu]:
        return {cpu.id: cpu for cpu in self.cpus}

    @cached_property
    def _core_by_cpu(self) -> dict[int, Core]:
        return {cpu: core for core in self.cores for cpu in core.cpus}

    @cached_property
    def _die_by_cpu(self) -> dict[int, Die]:
        return {cpu: die for die in self.dies for cpu in die.cpus}

    @cached_property
    def _package_by_cpu(self) -> dict[int, Package]:
        return {cpu: package for package in self.packages for cpu in package.cpus}

    @cached_property
    def _node_by_cpu(self) -> dict[int, Node]:
        return {cpu: node for node in reversed(self.nodes) for cpu in node.cpus}


def _cpus(cores: Iterable[Core]) -> CpuSet:
    return CpuSet.union(core.cpus for core in cores)
