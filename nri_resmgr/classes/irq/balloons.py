"""Interrupts on the CPUs of balloons, or away from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nri_resmgr.classes.irq.interrupts import Interrupt, is_any_named
from nri_resmgr.classes.irq.placement import Placement, Room
from nri_resmgr.classes.irq.requests import BalloonCpus, IrqMode
from nri_resmgr.values import CpuSet


def placed_for_balloons(
    interrupts: Iterable[Interrupt], balloons: Sequence[BalloonCpus], room: Room
) -> Placement:
    """Place interrupts as balloon types say.

    An interrupt goes to the balloons that claim it; else to the sinks; else away
    from isolating balloons, if it is on any CPU that the policy works with. Balloons
    without CPUs do not count. Where nothing says where an interrupt should go, it
    stays as it is.

    Args:
        interrupts: Those that may be moved.
        balloons: All that there are.
        room: Where interrupts may go.

    Source:
        nri-plugins, balloons policy, ``irqClaim`` and ``irqMode``.
    """
    sinks = _cpus(balloons, IrqMode.SINK)
    isolated = _cpus(balloons, IrqMode.ISOLATE) - sinks
    cpus, claimed, unplaced = {}, [], []
    for one in interrupts:
        if claims := _claims(one, balloons):
            claimed.append(one.number)
            cpus[one.number] = claims
        elif sinks:
            cpus[one.number] = sinks - room.banned or sinks
        elif isolated and not one.cpus.isdisjoint(room.available):
            outside = one.cpus - room.available
            if left := (room.free - isolated) | outside:
                cpus[one.number] = left
            else:
                unplaced.append(one.number)
    spared = (room.available | room.default) - sinks if sinks else isolated
    default = _default(sinks, isolated, room)
    return Placement(cpus, frozenset(claimed), tuple(unplaced), default, spared)


def _cpus(balloons: Sequence[BalloonCpus], mode: IrqMode) -> CpuSet:
    return CpuSet.union(one.cpus for one in balloons if one.rule.mode is mode)


def _claims(interrupt: Interrupt, balloons: Sequence[BalloonCpus]) -> CpuSet:
    return CpuSet.union(
        one.cpus for one in balloons if is_any_named(interrupt, one.rule.claim)
    )


def _default(sinks: CpuSet, isolated: CpuSet, room: Room) -> CpuSet | None:
    """Return where interrupts go that come later, if that is not as it was."""
    if not room.default:
        return None
    wanted = sinks - room.banned or sinks or room.default - isolated
    return wanted if wanted and wanted != room.default else None
