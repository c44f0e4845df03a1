"""Lookup tables of a machine's groups of CPUs, built once per machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.policy.cpus.levels import CpuPartition, TopologyLevel, partitions
from nri_resmgr.policy.cpus.priorities import PrioritySets, machine_priorities
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from nri_resmgr.values.identity_cache import IdentityCache

# Compared before the class of CPUs: remote memory costs more than slow cores.
_WIDE: Final = frozenset({TopologyLevel.PACKAGE, TopologyLevel.DIE, TopologyLevel.NODE})


class CpuGroup(msgspec.Struct, frozen=True):
    """A group in the tree of groups, with those of the next partition as children.

    *depth* is the index of its partition. A core has no children.
    """

    depth: int
    bits: int
    children: tuple[CpuGroup, ...]


# Compared by identity, as a key of caches: comparing contents takes longer than a
# lookup saves.
class CpuIndex(msgspec.Struct, frozen=True, eq=False):
    """The groups of a machine in the forms that the allocator looks up.

    Attributes:
        partitions: Groups by depth: the machine first, cores last.
        ancestors: Per depth, per depth not below it, per group: the index of
            the group around it.
        within: Per depth and group, per depth below: indices of the groups inside.
        largest: Per depth: the most CPUs that a group has.
        shapes: Per depth and group: a number that equally built groups share.
        home: Per depth and CPU: the mask of the group that the CPU is in.
        pairs: Cores with two CPUs, by the distance of the two ids: a mask of the lower
            ones.
        root: The same groups as a tree.
        inside: The first depth inside of packages, dies and nodes.
        priorities: The machine's CPUs of high and of low priority.
    """

    partitions: tuple[CpuPartition, ...]
    ancestors: tuple[tuple[tuple[int, ...], ...], ...]
    within: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    largest: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    home: tuple[Mapping[int, int], ...]
    pairs: tuple[tuple[int, int], ...]
    root: CpuGroup
    inside: int
    priorities: PrioritySets

    def whole_pairs(self, bits: int) -> int:
        """Return the lower CPUs of those pairs that are in *bits* as a whole."""
        found = 0
        for distance, firsts in self.pairs:
            found |= bits & firsts & bits >> distance
        return found


def _build(machine: Machine) -> CpuIndex:
    cuts = partitions(machine)
    groups: Sequence[CpuGroup] = ()
    for depth in reversed(range(len(cuts))):
        groups = _above(depth, cuts[depth].groups, groups)
    wide = max(depth for depth, cut in enumerate(cuts) if cut.levels & _WIDE)
    ancestors = tuple(_ancestors(cuts))
    return CpuIndex(
        partitions=cuts,
        ancestors=ancestors,
        within=tuple(_within(cuts, ancestors)),
        largest=tuple(max(map(int.bit_count, cut.groups)) for cut in cuts),
        shapes=_shapes(groups[0], len(cuts)),
        home=tuple(
            {cpu: bits for bits in cut.groups for cpu in CpuSet(bits)} for cut in cuts
        ),
        pairs=_pairs(cuts[-1].groups),
        root=groups[0],
        inside=wide + 1,
        priorities=machine_priorities(machine),
    )


# Two are in use while a new machine replaces the old one; tests use some more.
index_of: Final = IdentityCache(_build, most=8)
"""Returns the index of a machine; it is built once for each `Machine` object.

Comparing machines by content takes longer than an allocation.
"""


def _ancestors(cuts: Sequence[CpuPartition]) -> Iterator[tuple[tuple[int, ...], ...]]:
    firsts = [[CpuSet(bits).first for bits in cut.groups] for cut in cuts]
    homes = [
        {cpu: place for place, bits in enumerate(cut.groups) for cpu in CpuSet(bits)}
        for cut in cuts
    ]
    for depth, inner in enumerate(firsts):
        yield tuple(
            tuple(home[first] for first in inner) for home in homes[: depth + 1]
        )


def _within(
    cuts: Sequence[CpuPartition], ancestors: Sequence[Sequence[Sequence[int]]]
) -> Iterator[tuple[tuple[tuple[int, ...], ...], ...]]:
    for depth, cut in enumerate(cuts):
        rows: list[list[list[int]]] = [
            [[] for _ in cuts[depth + 1 :]] for _ in cut.groups
        ]
        for below, around in enumerate(ancestors[depth + 1 :]):
            for inner, outer in enumerate(around[depth]):
                rows[outer][below].append(inner)
        yield tuple(tuple(map(tuple, row)) for row in rows)


def _shapes(root: CpuGroup, depths: int) -> tuple[tuple[int, ...], ...]:
    """Number the structures: how many CPUs, in which groups, recursively."""
    known: dict[tuple[int, ...], int] = {}
    rows: list[list[int]] = [[] for _ in range(depths)]

    def number(group: CpuGroup) -> int:
        inner = [number(child) for child in group.children]
        # Negative, so that no size equals a number.
        structure = tuple(inner) or (-group.bits.bit_count(),)
        shape = known.setdefault(structure, len(known))
        rows[group.depth].append(shape)
        return shape

    number(root)
    return tuple(map(tuple, rows))


def _pairs(cores: Iterable[int]) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for bits in cores:
        if bits.bit_count() == 2:  # noqa: PLR2004 - a pair
            first = bits & -bits
            distance = bits.bit_length() - first.bit_length()
            found[distance] = found.get(distance, 0) | first
    return tuple(found.items())


def _above(
    depth: int, masks: Sequence[int], below: Sequence[CpuGroup]
) -> list[CpuGroup]:
    """Make the groups of a partition, with those of the next one as children."""
    home = {cpu: mask for mask in masks for cpu in CpuSet(mask)}
    children: dict[int, list[CpuGroup]] = {mask: [] for mask in masks}
    for group in below:
        children[home[CpuSet(group.bits).first]].append(group)
    return [CpuGroup(depth, mask, tuple(children[mask])) for mask in masks]
