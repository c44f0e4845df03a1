"""Sets of CPUs for interrupts, and the files that bring them about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY, Interrupt
from nri_resmgr.values import NO_CPUS, CpuSet


class Room(msgspec.Struct, frozen=True):
    """Where interrupts may go.

    Attributes:
        available: The online CPUs that the policy works with.
        banned: CPUs that another one keeps free of interrupts, such as irqbalance.
            They take only interrupts that are claimed for them.
        default: The CPUs that interrupts get which come later, but for what we have
            asked for; nothing where that is not known.
    """

    available: CpuSet
    banned: CpuSet = NO_CPUS
    default: CpuSet = NO_CPUS

    @property
    def free(self) -> CpuSet:
        """CPUs for interrupts that nobody claims."""
        return self.available - self.banned


class Placement(msgspec.Struct, frozen=True):
    """What interrupts should be like. Those it does not name stay as they were.

    Attributes:
        cpus: Number of an interrupt to the CPUs that shall take it.
        claimed: Numbers of those that somebody claims for CPUs of his own.
        unplaced: Numbers of those that would have no CPU left; they stay.
        default: The CPUs for interrupts that come later; None for as it was.
        spared: CPUs that shall take no interrupt but what is claimed for them.
    """

    cpus: Mapping[int, CpuSet] = {}
    claimed: frozenset[int] = frozenset()
    unplaced: tuple[int, ...] = ()
    default: CpuSet | None = None
    spared: CpuSet = NO_CPUS


def desired_files(
    placement: Placement, interrupts: Iterable[Interrupt]
) -> Mapping[str, str]:
    """Return path and text of the files to write, in this order.

    The default comes first: an interrupt that appears meanwhile is right at once.
    """
    files = {}
    if placement.default is not None:
        files[DEFAULT_AFFINITY] = placement.default.mask()
    for one in sorted(interrupts, key=lambda one: one.number):
        if one.number in placement.cpus:
            files[one.path] = str(placement.cpus[one.number])
    return files


def without_cpus(
    placement: Placement,
    interrupts: Iterable[Interrupt],
    masked: CpuSet,
    room: Room,
) -> Placement:
    """Take CPUs out of all interrupts, and out of those to come.

    This is what ``irq-load-balancing.crio.io: disable`` asks for. What is claimed
    stays claimed.

    Args:
        placement: What else is asked for.
        interrupts: Those that may be moved.
        masked: CPUs that shall take no interrupts.
        room: Where they may go.
    """
    if not masked:
        return placement
    cpus, unplaced = dict(placement.cpus), dict.fromkeys(placement.unplaced)
    for one in interrupts:
        present = cpus.get(one.number, one.cpus)
        if one.number in placement.claimed or present.isdisjoint(masked):
            continue
        if left := present - masked or room.free - masked:
            cpus[one.number] = left
            unplaced.pop(one.number, None)
        else:
            cpus.pop(one.number, None)
            unplaced[one.number] = None
    return Placement(
        cpus,
        placement.claimed,
        tuple(unplaced),
        _default_without(placement, masked, room),
        placement.spared | masked,
    )


def _default_without(placement: Placement, masked: CpuSet, room: Room) -> CpuSet | None:
    """Return the default without some CPUs; as it is where none would be left."""
    default = room.default if placement.default is None else placement.default
    if default.isdisjoint(masked):
        return placement.default
    return default - masked or placement.default
