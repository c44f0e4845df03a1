"""The groups of CPUs that a pick should not cut, from the machine down to threads."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


class Level(enum.StrEnum):
    """Kinds of group, widest first.

    `CACHE` groups share the last cache level that they have. `CLUSTER` is what
    the kernel calls so; where it knows none, cores that share a level 2 cache.
    """

    MACHINE = "machine"
    PACKAGE = "package"
    DIE = "die"
    NODE = "node"
    CACHE = "cache"
    CLUSTER = "cluster"
    CORE = "core"
    THREAD = "thread"


COUNTED = frozenset(Level) - {Level.MACHINE, Level.THREAD}
"""The levels at which a pick touches as few groups as it can."""


class Partition(msgspec.Struct, frozen=True):
    """All online CPUs in groups, which cut no group of the partition before.

    Attributes:
        levels: The levels that group the CPUs in just this way.
        groups: CPU masks; those of one group of the partition before stand
            together, in its order, by lowest CPU.
        narrowest: The last of the levels, which is what the groups are called.
    """

    levels: frozenset[Level]
    groups: tuple[int, ...]
    narrowest: Level

    @classmethod
    def of(cls, levels: frozenset[Level], groups: tuple[int, ...]) -> Partition:
        """Make the partition into *groups*, which is that of some levels."""
        return cls(levels, groups, max(levels, key=tuple(Level).index))


def partitions(machine: Machine) -> tuple[Partition, ...]:
    """Cut the machine's CPUs finer and finer, in the order in which picks count.

    The order is that of `Level`, but a level with fewer groups goes first: one
    node over two packages is outside of them. Where levels cross, as a node
    over two halves of dies does, the later one is cut along the earlier one.

    Returns:
        Partitions without repetition, the whole machine first and cores last.
    """
    rows = [
        (Level.MACHINE, [machine.online]),
        (Level.PACKAGE, [package.cpus for package in machine.packages]),
        (Level.DIE, [die.cpus for die in machine.dies]),
        (Level.NODE, [node.cpus for node in machine.nodes]),
        (Level.CACHE, _last_caches(machine)),
        (Level.CLUSTER, _clusters(machine)),
        (Level.CORE, [core.cpus for core in machine.cores]),
    ]
    # A level of which the kernel knows nothing has no groups, and no say.
    known = [row for row in rows[1:-1] if row[1]]
    inner = sorted(known, key=lambda row: sum(map(bool, row[1])))
    found: list[Partition] = []
    outer: Sequence[int] = (machine.online.bits,)
    for level, sets in (rows[0], *inner, rows[-1]):
        groups = _cut(outer, [cpus.bits for cpus in sets], machine)
        if found and found[-1].groups == groups:
            found[-1] = Partition.of(found[-1].levels | {level}, groups)
        else:
            found.append(Partition.of(frozenset({level}), groups))
        outer = groups
    return tuple(found)


def _cut(
    outer: Sequence[int], sets: Sequence[int], machine: Machine
) -> tuple[int, ...]:
    """Cut *outer* groups along *sets*; CPUs in none of these stay core by core."""
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
    """Return the sets that share a cache, of each CPU the farthest cache."""
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
