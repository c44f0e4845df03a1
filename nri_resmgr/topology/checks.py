"""What must hold between the facts of a machine before anyone may rely on them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from nri_resmgr.topology.caches import Cache, CacheKind
from nri_resmgr.topology.cores import Core, Cpu
from nri_resmgr.topology.memory import Node
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

# SLIT entries are bytes and 10 stands for "local" (ACPI 6.5, 5.2.17).
_LOCAL_DISTANCE = 10


@attrs.define(eq=False)
class ContradictoryMachine(InputError):
    """Facts about a machine do not fit together."""

    what: str

    def __str__(self) -> str:
        return f"the machine contradicts itself: {self.what}"


def check_cores(cores: Sequence[Core], cpus: Sequence[Cpu]) -> CpuSet:
    """Check that cores are disjoint and list the same CPUs; return those.

    Raises:
        ContradictoryMachine: They do not.
    """
    online = CpuSet()
    for core in cores:
        _require(bool(core.cpus), f"core {core.id} has no CPU")
        both = core.cpus & online
        _require(not both, f"CPU {both} is in two cores")
        online |= core.cpus
    _require(bool(online), "no CPU is online")
    _ascending([core.cpus.first for core in cores], "cores")
    _ascending([cpu.id for cpu in cpus], "CPUs")
    odd = CpuSet.from_iterable(cpu.id for cpu in cpus) ^ online
    _require(not odd, f"CPU {odd} is only in one of cores and CPUs")
    return online


def check_nodes(nodes: Sequence[Node], online: CpuSet) -> None:
    """Check that every online CPU is in one node and nodes have no other CPU.

    Raises:
        ContradictoryMachine: It is not so.
    """
    _ascending([node.id for node in nodes], "nodes")
    seen = CpuSet()
    for node in nodes:
        both = node.cpus & seen
        _require(not both, f"CPU {both} is in two nodes")
        seen |= node.cpus
    _require(seen <= online, f"CPU {seen - online} is in a node and not online")
    _require(online <= seen, f"CPU {online - seen} is online and in no node")


def check_distances(nodes: Sequence[Node], rows: Sequence[Sequence[int]]) -> None:
    """Check that there is one positive distance for every pair of nodes.

    Raises:
        ContradictoryMachine: There is not.
    """
    square = len(rows) == len(nodes) and all(len(r) == len(nodes) for r in rows)
    _require(square, f"distances are no {len(nodes)} by {len(nodes)} matrix")
    for node, row in zip(nodes, rows, strict=True):
        near = min(row) >= _LOCAL_DISTANCE
        _require(near, f"node {node.id} has a distance below {_LOCAL_DISTANCE}")


def check_sets(
    online: CpuSet, present: CpuSet, isolated: CpuSet, caches: Sequence[Cache]
) -> None:
    """Check that sets and caches name only CPUs that can be there.

    Raises:
        ContradictoryMachine: They name others.
    """
    _require(online <= present, f"CPU {online - present} is online and not present")
    extra = isolated - online
    _require(not extra, f"CPU {extra} is isolated and not online")
    shared: dict[tuple[int, CacheKind], CpuSet] = {}
    for cache in caches:
        name = f"a level {cache.level} cache"
        others = shared.get((cache.level, cache.kind), NO_CPUS)
        both = cache.cpus & others
        _require(not both, f"CPU {both} shares two caches of level {cache.level}")
        shared[cache.level, cache.kind] = others | cache.cpus
        _require(bool(cache.cpus), f"{name} has no CPU")
        extra = cache.cpus - online
        _require(not extra, f"{name} is shared by CPU {extra}, which is not online")


def _ascending(ids: Sequence[int], what: str) -> None:
    _require(sorted(set(ids)) == list(ids), f"{what} repeat or are out of order")


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - a condition is its point
    if not holds:
        raise ContradictoryMachine(what)
