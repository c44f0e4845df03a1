"""Interrupts on the CPUs of containers, or away from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nri_resmgr.classes.irq.interrupts import Interrupt, is_any_named
from nri_resmgr.classes.irq.placement import Placement, Room
from nri_resmgr.classes.irq.requests import Wish
from nri_resmgr.values import NO_CPUS, CpuSet


class _Sets(msgspec.Struct, frozen=True):
    """CPUs that wishes are about, for one interrupt."""

    before: CpuSet
    claimed: CpuSet
    masked: CpuSet


def placed_for_containers(
    interrupts: Iterable[Interrupt], wishes: Sequence[Wish], room: Room
) -> Placement:
    """Place the interrupts that containers claim or mask.

    Of the available CPUs those go first that are masked "claim-first". Of the rest
    those that claim it take an interrupt, if any does; else all but those that mask
    it. An interrupt that nobody names stays as it is.

    Args:
        interrupts: Those that may be moved.
        wishes: Of all containers that have exclusive CPUs.
        room: Where they may go.

    Source:
        nri-plugins, topology-aware policy, ``irq-affinity.go``.
    """
    cpus, claimed, unplaced = {}, [], []
    for one in interrupts:
        sets = _sets(one, wishes)
        if not (sets.before or sets.claimed or sets.masked):
            continue
        if sets.claimed:
            claimed.append(one.number)
            left = (room.available - sets.before) & sets.claimed
        else:
            left = room.free - sets.before - sets.masked
        if left:
            cpus[one.number] = left
        else:
            unplaced.append(one.number)
    return Placement(cpus, frozenset(claimed), tuple(unplaced))


def _sets(interrupt: Interrupt, wishes: Sequence[Wish]) -> _Sets:
    before = claimed = masked = NO_CPUS
    for wish in wishes:
        affinity = wish.affinity
        if is_any_named(interrupt, affinity.claim):
            claimed |= wish.cpus
        if is_any_named(interrupt, affinity.mask):
            if affinity.claim_first:
                before |= wish.cpus
            else:
                masked |= wish.cpus
    return _Sets(before, claimed, masked)
