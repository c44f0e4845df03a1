"""Groups of CPUs by topology level, from the machine down to cores."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


class TopologyLevel(enum.StrEnum):
    """Levels of the topology, widest first.

    `CACHE` groups share their last level of cache. `CLUSTER` groups are the kernel's
    clusters; if it reports none, cores that share a level 2 cache.
    """

    MACHINE = "machine"
    PACKAGE = "package"
    DIE = "die"
    NODE = "node"
    CACHE = "cache"
    CLUSTER = "cluster"
    CORE = "core"
    THREAD = "thread"


COUNTED = frozenset(TopologyLevel) - {TopologyLevel.MACHINE, TopologyLevel.THREAD}
"""The levels at which a pick touches as few groups as it can."""


class CpuPartition(msgspec.Struct, frozen=True):
    """All online CPUs in disjoint groups; each is inside one group of the one before.

    Groups are masks, in the order of the groups around them, then by lowest CPU. The
    narrowest of the levels that group the CPUs in just this way names them.
    """

    levels: frozenset[TopologyLevel]
    groups: tuple[int, ...]
    narrowest: TopologyLevel

    @classmethod
    def of(
        cls, levels: frozenset[TopologyLevel], groups: tuple[int, ...]
    ) -> CpuPartition:
        """Make the partition of *levels* into *groups*."""
        return cls(levels, groups, max(levels, key=tuple(TopologyLevel).index))


def partitions(machine: Machine) -> tuple[CpuPartition, ...]:
    """Divide the machine's CPUs ever finer, from the whole machine to cores.

    The order is that of `TopologyLevel`, but a level with fewer groups goes first: a
    node with two packages is around them. Where levels cross, such as a node with two
    halves of dies, the later one is cut along the earlier one. Levels that divide the
    CPUs in the same way are one partition.
    """
    rows = [
        (TopologyLevel.MACHINE, [machine.online]),
        (TopologyLevel.PACKAGE, [package.cpus for package in machine.packages]),
        (TopologyLevel.DIE, [die.cpus for die in machine.dies]),
        (TopologyLevel.NODE, machine.node_cpus),
        (TopologyLevel.CACHE, _last_caches(machine)),
        (TopologyLevel.CLUSTER, _clusters(machine)),
        (TopologyLevel.CORE, [core.cpus for core in machine.cores]),
    ]
    # A level that the kernel does not report has no groups.
    known = [row for row in rows[1:-1] if row[1]]
    inner = sorted(known, key=lambda row: sum(map(bool, row[1])))
    found: list[CpuPartition] = []
    outer: Sequence[int] = (machine.online.bits,)
    for level, sets in (rows[0], *inner, rows[-1]):
        groups = _cut(outer, [cpus.bits for cpus in sets], machine)
        if found and found[-1].groups == groups:
            found[-1] = CpuPartition.of(found[-1].levels | {level}, groups)
        else:
            found.append(CpuPartition.of(frozenset({level}), groups))
        outer = groups
    return tuple(found)


def _cut(
    outer: Sequence[int], sets: Sequence[int], machine: Machine
) -> tuple[int, ...]:
    """Cut *outer* groups along *sets*; CPUs in none of these are grouped by core."""
    loose = machine.online.bits
    for bits in sets:
        loose &= ~bits
    rest = [core.cpus.bits & loose for core in machine.cores] if loose else []
    home = {cpu: place for place, group in enumerate(outer) for cpu in CpuSet(group)}
    pieces: list[tuple[int, int]] = []
    for bits in (*sets, *rest):
        left = bits
        while left:
            place = home[CpuSet(left).first]
            pieces.append((place, left & outer[place]))
            left &= ~outer[place]
    return tuple(
        bits for _, bits in sorted(pieces, key=lambda one: (one[0], one[1] & -one[1]))
    )


def _last_caches(machine: Machine) -> list[CpuSet]:
    """Return the CPUs of each last-level cache."""
    found: list[CpuSet] = []
    seen = CpuSet()
    for cache in sorted(machine.caches, key=lambda cache: -cache.level):
        if not cache.cpus & seen:
            found.append(cache.cpus)
            seen |= cache.cpus
    return found


def _clusters(machine: Machine) -> list[CpuSet]:
    if machine.clusters:
        return [cluster.cpus for cluster in machine.clusters]
    sets = {cache.cpus for cache in machine.caches_at(2)}
    return [cpus for cpus in sets if machine.core_of(cpus.first).cpus < cpus]
