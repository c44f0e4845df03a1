"""CPUs for interrupts: by containers, by balloons, and away from isolated CPUs.

Callers pass only interrupts that may be moved; see `controlled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY, Interrupt, is_any_named
from nri_resmgr.classes.irq.requests import BalloonCpus, ContainerCpus, IrqMode
from nri_resmgr.values import NO_CPUS, CpuSet


class InterruptCpus(msgspec.Struct, frozen=True):
    """CPUs for interrupts.

    Attributes:
        available: The online CPUs that the policy works with.
        banned: CPUs that irqbalance keeps free of interrupts by its own settings. They
            take only interrupts that are claimed for them.
        default: CPUs of interrupts that appear later, without any change of this
            daemon; empty if unknown.
    """

    available: CpuSet
    banned: CpuSet = NO_CPUS
    default: CpuSet = NO_CPUS

    @property
    def free(self) -> CpuSet:
        """CPUs for unclaimed interrupts."""
        return self.available - self.banned


class InterruptPlacement(msgspec.Struct, frozen=True):
    """Wanted CPUs of interrupts. Those that it does not name stay unchanged.

    Attributes:
        cpus: Number of an interrupt to the CPUs that take it.
        claimed: Numbers of interrupts that a container or balloon type claims.
        unplaced: Numbers of interrupts that would have no CPU left; they stay.
        default: CPUs of interrupts that appear later; None to leave them unchanged.
        spared: CPUs that take only interrupts that are claimed for them.
    """

    cpus: Mapping[int, CpuSet] = {}
    claimed: frozenset[int] = frozenset()
    unplaced: tuple[int, ...] = ()
    default: CpuSet | None = None
    spared: CpuSet = NO_CPUS


def desired_files(
    placement: InterruptPlacement, interrupts: Iterable[Interrupt]
) -> Mapping[str, str]:
    """Return path and text of the files, in the order of writing.

    The default comes first, for interrupts that appear meanwhile.
    """
    files = {}
    if placement.default is not None:
        files[DEFAULT_AFFINITY] = placement.default.mask()
    for one in sorted(interrupts, key=lambda one: one.number):
        if one.number in placement.cpus:
            files[one.path] = str(placement.cpus[one.number])
    return files


def without_cpus(
    placement: InterruptPlacement,
    interrupts: Iterable[Interrupt],
    masked: CpuSet,
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Remove CPUs from all interrupts and from the default.

    This is what ``irq-load-balancing.crio.io: disable`` asks for. Claimed interrupts
    stay where they are claimed.
    """
    if not masked:
        return placement
    cpus, unplaced = dict(placement.cpus), dict.fromkeys(placement.unplaced)
    for one in interrupts:
        present = cpus.get(one.number, one.cpus)
        if one.number in placement.claimed or present.isdisjoint(masked):
            continue
        if left := present - masked or irq_cpus.free - masked:
            cpus[one.number] = left
            unplaced.pop(one.number, None)
        else:
            cpus.pop(one.number, None)
            unplaced[one.number] = None
    return InterruptPlacement(
        cpus,
        placement.claimed,
        tuple(unplaced),
        _default_without(placement, masked, irq_cpus),
        placement.spared | masked,
    )


def _default_without(
    placement: InterruptPlacement, masked: CpuSet, irq_cpus: InterruptCpus
) -> CpuSet | None:
    """Return the default without some CPUs; unchanged if none would be left."""
    default = irq_cpus.default if placement.default is None else placement.default
    if default.isdisjoint(masked):
        return placement.default
    return default - masked or placement.default


def placed_for_containers(
    interrupts: Iterable[Interrupt],
    containers: Sequence[ContainerCpus],
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Place the interrupts that containers claim or mask.

    CPUs masked with "claim-first" never take an interrupt. Of the other available CPUs
    those that claim it take it, if any does; else all except those that mask it. An
    interrupt that no request matches stays unchanged.

    Source:
        nri-plugins, topology-aware policy, ``irq-affinity.go``.
    """
    cpus, claimed, unplaced = {}, [], []
    for one in interrupts:
        never, claims, masked = _sets(one, containers)
        if not (never or claims or masked):
            continue
        if claims:
            claimed.append(one.number)
            left = (irq_cpus.available - never) & claims
        else:
            left = irq_cpus.free - never - masked
        if left:
            cpus[one.number] = left
        else:
            unplaced.append(one.number)
    return InterruptPlacement(cpus, frozenset(claimed), tuple(unplaced))


def _sets(
    interrupt: Interrupt, containers: Sequence[ContainerCpus]
) -> tuple[CpuSet, CpuSet, CpuSet]:
    """Return the CPUs that mask an interrupt first, claim it, and mask it."""
    before = claimed = masked = NO_CPUS
    for one in containers:
        affinity = one.affinity
        if is_any_named(interrupt, affinity.claim):
            claimed |= one.cpus
        if is_any_named(interrupt, affinity.mask):
            if affinity.claim_first:
                before |= one.cpus
            else:
                masked |= one.cpus
    return before, claimed, masked


def placed_for_balloons(
    interrupts: Iterable[Interrupt],
    balloons: Sequence[BalloonCpus],
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Place interrupts by the rules of balloon types.

    An interrupt goes to the balloons that claim it; else to the sinks; else away
    from isolating balloons, if it is on any CPU that the policy works with. Balloons
    without CPUs do not count. An interrupt to which no rule applies stays unchanged.

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
            cpus[one.number] = sinks - irq_cpus.banned or sinks
        elif isolated and not one.cpus.isdisjoint(irq_cpus.available):
            outside = one.cpus - irq_cpus.available
            if left := (irq_cpus.free - isolated) | outside:
                cpus[one.number] = left
            else:
                unplaced.append(one.number)
    spared = (irq_cpus.available | irq_cpus.default) - sinks if sinks else isolated
    default = _default(sinks, isolated, irq_cpus)
    return InterruptPlacement(
        cpus, frozenset(claimed), tuple(unplaced), default, spared
    )


def _cpus(balloons: Sequence[BalloonCpus], mode: IrqMode) -> CpuSet:
    return CpuSet.union(one.cpus for one in balloons if one.rule.mode is mode)


def _claims(interrupt: Interrupt, balloons: Sequence[BalloonCpus]) -> CpuSet:
    return CpuSet.union(
        one.cpus for one in balloons if is_any_named(interrupt, one.rule.claim)
    )


def _default(sinks: CpuSet, isolated: CpuSet, irq_cpus: InterruptCpus) -> CpuSet | None:
    """Return the CPUs of interrupts that appear later; None for no change."""
    if not irq_cpus.default:
        return None
    wanted = sinks - irq_cpus.banned or sinks or irq_cpus.default - isolated
    return wanted if wanted and wanted != irq_cpus.default else None
