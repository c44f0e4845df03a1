"""CPUs for interrupts: by containers, by balloons, and away from isolated CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY, Interrupt, is_any_named
from nri_resmgr.classes.irq.requests import BalloonCpus, ContainerCpus, IrqMode
from nri_resmgr.values import NO_CPUS, CpuSet


class InterruptCpus(msgspec.Struct, frozen=True):
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


class InterruptPlacement(msgspec.Struct, frozen=True):
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
    placement: InterruptPlacement, interrupts: Iterable[Interrupt]
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
    placement: InterruptPlacement,
    interrupts: Iterable[Interrupt],
    masked: CpuSet,
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Take CPUs out of all interrupts, and out of those to come.

    This is what ``irq-load-balancing.crio.io: disable`` asks for. What is claimed
    stays claimed.

    Args:
        placement: What else is asked for.
        interrupts: Those that may be moved.
        masked: CPUs that shall take no interrupts.
        irq_cpus: Where they may go.
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
    """Return the default without some CPUs; as it is where none would be left."""
    default = irq_cpus.default if placement.default is None else placement.default
    if default.isdisjoint(masked):
        return placement.default
    return default - masked or placement.default


class _Sets(msgspec.Struct, frozen=True):
    """CPUs that containers are about, for one interrupt."""

    before: CpuSet
    claimed: CpuSet
    masked: CpuSet


def placed_for_containers(
    interrupts: Iterable[Interrupt],
    containers: Sequence[ContainerCpus],
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Place the interrupts that containers claim or mask.

    Of the available CPUs those go first that are masked "claim-first". Of the rest
    those that claim it take an interrupt, if any does; else all but those that mask
    it. An interrupt that nobody names stays as it is.

    Args:
        interrupts: Those that may be moved.
        containers: Of all containers that have exclusive CPUs.
        irq_cpus: Where they may go.

    Source:
        nri-plugins, topology-aware policy, ``irq-affinity.go``.
    """
    cpus, claimed, unplaced = {}, [], []
    for one in interrupts:
        sets = _sets(one, containers)
        if not (sets.before or sets.claimed or sets.masked):
            continue
        if sets.claimed:
            claimed.append(one.number)
            left = (irq_cpus.available - sets.before) & sets.claimed
        else:
            left = irq_cpus.free - sets.before - sets.masked
        if left:
            cpus[one.number] = left
        else:
            unplaced.append(one.number)
    return InterruptPlacement(cpus, frozenset(claimed), tuple(unplaced))


def _sets(interrupt: Interrupt, containers: Sequence[ContainerCpus]) -> _Sets:
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
    return _Sets(before, claimed, masked)


def placed_for_balloons(
    interrupts: Iterable[Interrupt],
    balloons: Sequence[BalloonCpus],
    irq_cpus: InterruptCpus,
) -> InterruptPlacement:
    """Place interrupts as balloon types say.

    An interrupt goes to the balloons that claim it; else to the sinks; else away
    from isolating balloons, if it is on any CPU that the policy works with. Balloons
    without CPUs do not count. Where nothing says where an interrupt should go, it
    stays as it is.

    Args:
        interrupts: Those that may be moved.
        balloons: All that there are.
        irq_cpus: Where interrupts may go.

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
    """Return where interrupts go that come later, if that is not as it was."""
    if not irq_cpus.default:
        return None
    wanted = sinks - irq_cpus.banned or sinks or irq_cpus.default - isolated
    return wanted if wanted and wanted != irq_cpus.default else None
