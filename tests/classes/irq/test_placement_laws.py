"""Which CPUs take an interrupt, said for each CPU by itself."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import (
    InterruptCpus,
    InterruptPlacement,
    placed_for_balloons,
    placed_for_containers,
    without_cpus,
)
from nri_resmgr.classes.irq.requests import (
    BalloonCpus,
    ContainerCpus,
    IrqAffinity,
    IrqMode,
    IrqRule,
)
from nri_resmgr.values import CpuSet

COUNT = 8  # CPUs
SETS = st.frozensets(st.integers(0, COUNT - 1)).map(CpuSet.from_iterable)
SOME = SETS.filter(bool)
PATTERNS = st.lists(
    st.sampled_from(["*", "eth*", "*0", "nvme?", "1", "2", "3", "no"]), max_size=2
).map(tuple)
IRQ_CPU_SETS = st.builds(InterruptCpus, SOME, SETS, SETS)
NAMES = st.sampled_from(["eth0", "eth1", "nvme0", "timer"])
INTERRUPTS = st.lists(
    st.builds(Interrupt, st.integers(1, 4), NAMES, SOME),
    unique_by=lambda one: one.number,
).map(tuple)
CONTAINERS = st.lists(
    st.builds(
        ContainerCpus, SOME, st.builds(IrqAffinity, PATTERNS, PATTERNS, st.booleans())
    ),
    max_size=3,
)
RULES = st.builds(IrqRule, PATTERNS, st.sampled_from([None, *IrqMode]))
BALLOONS = st.lists(st.builds(BalloonCpus, SETS, RULES), max_size=4)


def names(patterns: tuple[str, ...], one: Interrupt) -> bool:
    return any(fnmatchcase(one.name, p) or p == f"{one.number}" for p in patterns)


def expected(placement: InterruptPlacement, one: Interrupt, allowed: list[int]) -> None:
    """See that *allowed* take an interrupt; if they are none, that it stays."""
    if allowed:
        assert list(placement.cpus[one.number]) == allowed
    else:
        assert one.number not in placement.cpus
    assert (one.number in placement.unplaced) == (not allowed)


@given(INTERRUPTS, CONTAINERS, IRQ_CPU_SETS)
def test_a_cpu_takes_what_its_container_and_no_other_one_allows(
    interrupts: tuple[Interrupt, ...],
    containers: list[ContainerCpus],
    irq_cpus: InterruptCpus,
) -> None:
    placement = placed_for_containers(interrupts, containers, irq_cpus)

    for one in interrupts:
        claims = [w for w in containers if names(w.affinity.claim, one)]
        masks = [w for w in containers if names(w.affinity.mask, one)]
        if not claims and not masks:
            assert one.number not in {*placement.cpus, *placement.unplaced}
            continue
        strict = [w for w in masks if w.affinity.claim_first]

        def takes(
            cpu: int, claims: list[ContainerCpus], masks: list[ContainerCpus]
        ) -> bool:
            if claims:
                return any(cpu in w.cpus for w in claims)
            return cpu not in irq_cpus.banned and not any(cpu in w.cpus for w in masks)

        allowed = [
            cpu
            for cpu in range(COUNT)
            if cpu in irq_cpus.available
            and not any(cpu in w.cpus for w in strict)
            and takes(cpu, claims, masks)
        ]
        expected(placement, one, allowed)


@given(INTERRUPTS, BALLOONS, IRQ_CPU_SETS)
def test_balloons_claim_then_sinks_take_then_others_are_spared(
    interrupts: tuple[Interrupt, ...],
    balloons: list[BalloonCpus],
    irq_cpus: InterruptCpus,
) -> None:
    placement = placed_for_balloons(interrupts, balloons, irq_cpus)

    modes = {
        cpu: {b.rule.mode for b in balloons if cpu in b.cpus} for cpu in range(COUNT)
    }
    sinks = [cpu for cpu in range(COUNT) if IrqMode.SINK in modes[cpu]]
    spared = {cpu for cpu in range(COUNT) if IrqMode.ISOLATE in modes[cpu]}
    for one in interrupts:
        claimed = [
            cpu
            for cpu in range(COUNT)
            if any(cpu in b.cpus and names(b.rule.claim, one) for b in balloons)
        ]
        if claimed:
            allowed = claimed
        elif sinks:
            allowed = [cpu for cpu in sinks if cpu not in irq_cpus.banned] or sinks
        elif spared and any(cpu in irq_cpus.available for cpu in one.cpus):
            allowed = [
                cpu
                for cpu in range(COUNT)
                if (
                    cpu not in spared and cpu not in irq_cpus.banned
                    if cpu in irq_cpus.available
                    else cpu in one.cpus
                )
            ]
        else:
            assert one.number not in {*placement.cpus, *placement.unplaced}
            continue
        expected(placement, one, allowed)


@given(INTERRUPTS, BALLOONS, SETS, IRQ_CPU_SETS)
def test_no_interrupt_is_left_on_cpus_taken_out_but_by_claim_or_need(
    interrupts: tuple[Interrupt, ...],
    balloons: list[BalloonCpus],
    masked: CpuSet,
    irq_cpus: InterruptCpus,
) -> None:
    before = placed_for_balloons(interrupts, balloons, irq_cpus)
    after = without_cpus(before, interrupts, masked, irq_cpus)

    for one in interrupts:
        was = before.cpus.get(one.number, one.cpus)
        now = after.cpus.get(one.number, one.cpus)
        if one.number in after.claimed or was.isdisjoint(masked):
            assert now == was
        elif one.number in after.unplaced:
            assert was <= masked
            assert irq_cpus.free <= masked
        else:
            assert now
            assert now.isdisjoint(masked)
            assert now <= was or now <= irq_cpus.free
    if after.default is not None:
        assert after.default
