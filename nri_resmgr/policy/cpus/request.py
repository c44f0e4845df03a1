"""What is asked of the CPU allocator and what it answers."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.policy.cpus.levels import COUNTED, Level
from nri_resmgr.policy.cpus.priorities import CpuPriority, PrioritySets
from nri_resmgr.values import NO_CPUS, CpuSet


class CoreUse(enum.StrEnum):
    """How a pick treats the threads of a core.

    `WHOLE` touches as few cores as it can. `FRAGMENTS` breaks as few idle cores
    as it can. `ONE_THREAD` takes one thread of every core before a second one.
    """

    WHOLE = "whole"
    FRAGMENTS = "fragments"
    ONE_THREAD = "one-thread"


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """What makes one pick better than another of the same size.

    Attributes:
        near: CPUs to take first, such as those of a device's node.
        far: CPUs to take last; `near` weighs more where both speak.
        held: CPUs that the container has already: groups they sit in cost
            nothing, so the pick grows beside them.
        priority: The preferred class of CPUs. It weighs less than packages,
            dies and nodes, and more than caches, clusters and cores.
        classes: The classes; None for what `machine_priorities` finds.
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
    levels: frozenset[Level] = COUNTED

    def without_sets(self) -> Preferences:
        """Return what stays the same while the sets change with every request."""
        return Preferences(
            priority=self.priority,
            classes=self.classes,
            spread=self.spread,
            cores=self.cores,
            levels=self.levels,
        )


class CpuRequest(Preferences, frozen=True):
    """A wish for *count* CPUs out of *free*.

    >>> CpuRequest(2, CpuSet.parse("0-3"), spread=True).count
    2
    """

    count: int
    free: CpuSet

    def __post_init__(self) -> None:
        if self.count < 0:
            msg = f"nobody can want {self.count} CPUs"
            raise ValueError(msg)


class Rule(enum.StrEnum):
    """Why these CPUs; logged with every decision and asserted by tests.

    `EVERYTHING`: there was no choice, all free CPUs or none were wanted.
    `ONLY_GROUP`: just one group of the level could hold the request.
    `TIGHTEST`, `ROOMIEST`: several could; the fullest or the emptiest won,
    unless priority or the use of cores told them apart before.
    `SPILL`: no group below the machine could hold it.
    """

    EVERYTHING = "everything"
    ONLY_GROUP = "only-group"
    TIGHTEST = "tightest"
    ROOMIEST = "roomiest"
    SPILL = "spill"


class Reason(msgspec.Struct, frozen=True):
    """How a pick came about.

    Attributes:
        rule: What decided.
        candidates: How many groups of the pick's level could hold the request.
        near: How many CPUs of the pick are in the request's `near` set.
        far: How many are in its `far` set.
    """

    rule: Rule
    candidates: int
    near: int = 0
    far: int = 0


class CpuPick(msgspec.Struct, frozen=True):
    """The chosen CPUs.

    Attributes:
        cpus: The CPUs, as many as were wanted.
        level: The narrowest level with one group that holds them all.
        reason: Why these.
    """

    cpus: CpuSet
    level: Level
    reason: Reason
