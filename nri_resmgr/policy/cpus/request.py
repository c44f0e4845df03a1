"""Requests to the CPU allocator, its answers and its refusal."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from nri_resmgr.policy.cpus.levels import COUNTED, TopologyLevel
from nri_resmgr.policy.cpus.priorities import CpuPriority, PrioritySets
from nri_resmgr.values import NO_CPUS, CpuSet, PolicyError
from nri_resmgr.values.counts import count_text


class CoreUse(enum.StrEnum):
    """Treatment of the threads of a core by a pick.

    `WHOLE` touches as few cores as it can. `FRAGMENTS` breaks as few idle cores
    as it can. `ONE_THREAD` takes one thread of every core before a second one.
    """

    WHOLE = "whole"
    FRAGMENTS = "fragments"
    ONE_THREAD = "one-thread"


class CpuPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """Preferences among picks of the same size.

    Attributes:
        near: CPUs to take first, such as those of a device's node.
        far: CPUs to take last; `near` weighs more for CPUs in both.
        held: CPUs that the container has already: their groups cost nothing, so that
            the pick extends them.
        priority: The preferred class of CPUs. It weighs less than packages,
            dies and nodes, and more than caches, clusters and cores.
        classes: The classes; None for those of `machine_priorities`.
        spread: Whether the roomiest of equally good groups wins, not the
            tightest.
        cores: How threads of a core are treated; weighs as `priority` does.
        levels: The levels at which the pick touches few groups.
    """

    near: CpuSet = NO_CPUS
    far: CpuSet = NO_CPUS
    held: CpuSet = NO_CPUS
    priority: CpuPriority = CpuPriority.NORMAL
    classes: PrioritySets | None = None
    spread: bool = False
    cores: CoreUse = CoreUse.WHOLE
    levels: frozenset[TopologyLevel] = COUNTED

    # As a key of caches: with the sets there would be an entry for every request.
    def without_sets(self) -> CpuPreferences:
        """Return the preferences without CPU sets, which change with every request."""
        return CpuPreferences(
            priority=self.priority,
            classes=self.classes,
            spread=self.spread,
            cores=self.cores,
            levels=self.levels,
        )


class CpuRequest(CpuPreferences, frozen=True):
    """A request for *count* CPUs out of *free*.

    >>> CpuRequest(2, CpuSet.parse("0-3"), spread=True).count
    2
    """

    count: int
    free: CpuSet

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"the number of CPUs must not be negative: {self.count}")


class PickRule(enum.StrEnum):
    """The rule of a pick of CPUs; logged with every decision and asserted by tests.

    `EVERYTHING`: all free CPUs or none were requested.
    `ONLY_GROUP`: just one group of the level could hold the request.
    `TIGHTEST`, `ROOMIEST`: several could; the fullest or the emptiest won,
    unless priority or the use of cores decided before.
    `SPILL`: no group below the machine could hold it.
    """

    EVERYTHING = "everything"
    ONLY_GROUP = "only-group"
    TIGHTEST = "tightest"
    ROOMIEST = "roomiest"
    SPILL = "spill"


class PickReason(msgspec.Struct, frozen=True):
    """The reason for an allocator's pick.

    *candidates* groups of the pick's level could hold the request; *near* and *far*
    count the pick's CPUs in these sets of the request.
    """

    rule: PickRule
    candidates: int
    near: int = 0
    far: int = 0


class CpuPick(msgspec.Struct, frozen=True):
    """The chosen CPUs, and the narrowest level with one group that holds them all."""

    cpus: CpuSet
    level: TopologyLevel
    reason: PickReason


@dataclass(eq=False)
class CpusExhausted(PolicyError):
    """Fewer CPUs are free than requested."""

    wanted: int
    free: CpuSet

    def __str__(self) -> str:
        which = f" ({self.free})" if self.free else ""
        return f"wanted {count_text(self.wanted, 'CPU')}, {len(self.free)} free{which}"
