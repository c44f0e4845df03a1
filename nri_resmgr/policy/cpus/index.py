"""A machine's groups of CPUs as a tree, built once per machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs

from nri_resmgr.policy.cpus.levels import Level, Partition, partitions
from nri_resmgr.policy.cpus.priorities import PrioritySets, machine_priorities
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


@attrs.frozen(eq=False)
class Group:
    """A node of the tree; a core has no children.

    Attributes:
        depth: Index of the partition that the group belongs to.
        bits: The group's CPUs.
        children: Groups of the next partition, by lowest CPU.
    """

    depth: int
    bits: int
    children: tuple[Group, ...]


@attrs.frozen(eq=False)
class CpuIndex:
    """What the allocator needs of a machine, in the form in which it is fast."""

    partitions: tuple[Partition, ...]
    root: Group
    priorities: PrioritySets


def index_of(machine: Machine) -> CpuIndex:
    """Return the index of a machine; the machine's identity is the key.

    Comparing models by content costs more than an allocation. A model that is
    equal and not the same object only costs the time of building once more.
    """
    return _build(_Same(machine))


def narrowest_level(partition: Partition) -> Level:
    """Return the last of the levels that a partition stands for."""
    order = tuple(Level)
    return max(partition.levels, key=order.index)


@attrs.frozen(eq=False)
class _Same:
    """A machine that equals only itself, and lives as long as its cache entry."""

    machine: Machine

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.machine is other.machine

    def __hash__(self) -> int:
        return id(self.machine)


# Two are in use while a new model replaces the old one; tests use some more.
@lru_cache(maxsize=8)
def _build(same: _Same) -> CpuIndex:
    cuts = partitions(same.machine)
    groups: Sequence[Group] = ()
    for depth in reversed(range(len(cuts))):
        groups = _above(depth, cuts[depth].groups, groups)
    return CpuIndex(cuts, groups[0], machine_priorities(same.machine))


def _above(depth: int, masks: Sequence[int], below: Sequence[Group]) -> list[Group]:
    """Put the groups of the partition below into the groups that they are part of."""
    home = {cpu: mask for mask in masks for cpu in CpuSet(mask)}
    children: dict[int, list[Group]] = {mask: [] for mask in masks}
    for group in below:
        children[home[CpuSet(group.bits).first]].append(group)
    return [Group(depth, mask, tuple(children[mask])) for mask in masks]
