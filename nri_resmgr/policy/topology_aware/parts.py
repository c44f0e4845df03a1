"""The parts of a machine that become pools, nested, and the memory near to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.topology import CacheKind, Core, Machine
from nri_resmgr.values import CpuSet, NodeSet

_LAST_LEVEL: Final = 3


class Part(msgspec.Struct, frozen=True):
    """A part of a machine with the smaller parts in it, which are disjoint.

    Attributes:
        name: Unique in the machine.
        level: What it follows.
        cpus: All of its online CPUs, also those in no smaller part.
        inner: The smaller parts.
    """

    name: str
    level: TreeLevel
    cpus: CpuSet
    inner: tuple[Part, ...] = ()


def parts_of(machine: Machine) -> Part:
    """Divide a machine into packages, dies, NUMA nodes and level 3 caches.

    A level that would not divide anything is left out. So are

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
    return Part("root", TreeLevel.SYSTEM, machine.online, packages)


def memory_at(machine: Machine) -> Mapping[int, NodeSet]:
    """Return which memory is at home at each node with CPUs, maybe none.

    That is its own, and that of nodes without CPUs to which no other CPUs are
    closer. Firmware may tell another distance for the way back; it is the CPUs
    that read and write, so theirs counts.
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


def _package(machine: Machine, place: int) -> Part:
    package = machine.packages[place]
    name, level = f"socket #{package.id}", TreeLevel.PACKAGE
    inner = _dies(machine, package.id) or _inner(machine, name, package.cpus)
    return Part(name, level, package.cpus, inner)


def _dies(machine: Machine, package: int) -> tuple[Part, ...]:
    cores = [core for core in machine.cores if core.package == package]
    dies = [die for die in machine.dies if die.package == package]
    if len(dies) == 1 or not _has_clusters(cores) or _share_a_node(machine, cores):
        return ()
    names = [f"die #{package}/{die.id}" for die in dies]
    return tuple(
        Part(name, TreeLevel.DIE, die.cpus, _inner(machine, name, die.cpus))
        for name, die in zip(names, dies, strict=True)
    )


def _has_clusters(cores: Sequence[Core]) -> bool:
    """Tell whether some die has several clusters."""
    dies = {core.die for core in cores}
    clusters = {
        (core.die, core.cpus.first if core.cluster is None else -1 - core.cluster)
        for core in cores
    }
    return len(clusters) > len(dies)


def _share_a_node(machine: Machine, cores: Sequence[Core]) -> bool:
    """Tell whether one of several nodes has memory for more than one die."""
    dies_of: dict[int, set[int]] = {}
    for core in cores:
        node = machine.node_of(core.cpus.first)
        dies_of.setdefault(node.id, set()).add(core.die)
    return len(dies_of) > 1 and any(
        len(dies) > 1 and machine.node(node).memory for node, dies in dies_of.items()
    )


def _inner(machine: Machine, name: str, cpus: CpuSet) -> tuple[Part, ...]:
    return _nodes(machine, cpus) or _caches(machine, name, cpus)


def _nodes(machine: Machine, cpus: CpuSet) -> tuple[Part, ...]:
    here = [node for node in machine.nodes if node.cpus and node.cpus & cpus]
    if len(here) == 1:
        return ()
    parts = []
    for node in here:
        if node.memory and node.cpus <= cpus:
            name = f"NUMA node #{node.id}"
            inner = _caches(machine, name, node.cpus)
            parts.append(Part(name, TreeLevel.NUMA, node.cpus, inner))
    return tuple(parts)


def _caches(machine: Machine, outer: str, cpus: CpuSet) -> tuple[Part, ...]:
    last = machine.caches_at(_LAST_LEVEL)
    caches = [cache for cache in last if cache.kind is not CacheKind.INSTRUCTION]
    # Without ids of the kernel, the order tells them apart.
    counted = any(cache.id is None for cache in caches)
    numbers = [place if counted else one.id for place, one in enumerate(caches)]
    inside = [
        Part(f"{outer}/L3 cache #{number}", TreeLevel.L3, cache.cpus)
        for number, cache in zip(numbers, caches, strict=True)
        if cache.cpus <= cpus
    ]
    return tuple(inside) if len(inside) > 1 else ()
