"""Consistency checks of a machine's data; each raises `ContradictoryMachine`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nri_resmgr.topology.cores import Cache, CacheKind, Core, Cpu
from nri_resmgr.topology.memory import Node
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

# SLIT entries are bytes and 10 stands for "local" (ACPI 6.5, 5.2.17).
_LOCAL_DISTANCE = 10


@dataclass(eq=False)
class ContradictoryMachine(InputError):
    """The data about a machine is inconsistent."""

    what: str

    def __str__(self) -> str:
        return f"inconsistent machine: {self.what}"


def check_cores(cores: Sequence[Core], cpus: Sequence[Cpu]) -> CpuSet:
    """Check that cores are disjoint and list the same CPUs; return those."""
    for core in cores:
        if not core.cpus:
            raise ContradictoryMachine(f"core {core.id} has no CPU")
    online = check_disjoint((core.cpus for core in cores), "cores")
    if not online:
        raise ContradictoryMachine("no CPU is online")
    _ascending([core.cpus.first for core in cores], "cores")
    _ascending([cpu.id for cpu in cpus], "CPUs")
    if odd := CpuSet.from_iterable(cpu.id for cpu in cpus) ^ online:
        raise ContradictoryMachine(f"CPU {odd} is only in one of cores and CPUs")
    return online


def check_nodes(nodes: Sequence[Node], online: CpuSet) -> None:
    """Check that every online CPU is in a node and nodes have no other CPU.

    Nodes of emulated NUMA have the same CPUs; others have none in common.
    """
    _ascending([node.id for node in nodes], "nodes")
    seen = check_disjoint(dict.fromkeys(node.cpus for node in nodes), "nodes")
    if extra := seen - online:
        raise ContradictoryMachine(f"CPU {extra} is in a node and not online")
    if missing := online - seen:
        raise ContradictoryMachine(f"CPU {missing} is online and in no node")


def check_distances(nodes: Sequence[Node], rows: Sequence[Sequence[int]]) -> None:
    """Check that there is one positive distance for every pair of nodes."""
    size = len(nodes)
    if len(rows) != size or any(len(row) != size for row in rows):
        raise ContradictoryMachine(f"distances are not a {size} by {size} matrix")
    for node, row in zip(nodes, rows, strict=True):
        if min(row) < _LOCAL_DISTANCE:
            raise ContradictoryMachine(
                f"node {node.id} has a distance below {_LOCAL_DISTANCE}"
            )


def check_sets(
    online: CpuSet, present: CpuSet, isolated: CpuSet, caches: Sequence[Cache]
) -> None:
    """Check that sets and caches have only CPUs that may be in them."""
    if extra := online - present:
        raise ContradictoryMachine(f"CPU {extra} is online and not present")
    if extra := isolated - online:
        raise ContradictoryMachine(f"CPU {extra} is isolated and not online")
    # Level 1 has two caches per core, so that a CPU has one per level and kind.
    shared: dict[tuple[int, CacheKind], CpuSet] = {}
    for cache in caches:
        if not cache.cpus:
            raise ContradictoryMachine(f"a level {cache.level} cache has no CPU")
        if extra := cache.cpus - online:
            raise ContradictoryMachine(f"CPU {extra} has a cache and is not online")
        others = shared.get((cache.level, cache.kind), NO_CPUS)
        if both := cache.cpus & others:
            raise ContradictoryMachine(f"CPU {both} has two level {cache.level} caches")
        shared[cache.level, cache.kind] = others | cache.cpus


def check_disjoint(parts: Iterable[CpuSet], what: str) -> CpuSet:
    """Check that no CPU is in two parts; return their union."""
    seen = NO_CPUS
    for part in parts:
        if both := part & seen:
            raise ContradictoryMachine(f"CPU {both} is in two {what}")
        seen |= part
    return seen


def _ascending(ids: Sequence[int], what: str) -> None:
    if sorted(set(ids)) != list(ids):
        raise ContradictoryMachine(f"{what} repeat or are out of order")
