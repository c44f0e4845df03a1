"""Who takes an interrupt, said for each CPU by itself."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.irq.balloons import placed_for_balloons
from nri_resmgr.classes.irq.containers import placed_for_containers
from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import Placement, Room, without_cpus
from nri_resmgr.classes.irq.requests import (
    BalloonCpus,
    IrqAffinity,
    IrqMode,
    IrqRule,
    Wish,
)
from nri_resmgr.values import CpuSet

COUNT = 8  # CPUs
SETS = st.frozensets(st.integers(0, COUNT - 1)).map(CpuSet.from_iterable)
SOME = SETS.filter(bool)
PATTERNS = st.lists(
    st.sampled_from(["*", "eth*", "*0", "nvme?", "1", "2", "3", "no"]), max_size=2
).map(tuple)
ROOMS = st.builds(Room, SOME, SETS, SETS)
NAMES = st.sampled_from(["eth0", "eth1", "nvme0", "timer"])
INTERRUPTS = st.lists(
    st.builds(Interrupt, st.integers(1, 4), NAMES, SOME),
    unique_by=lambda one: one.number,
).map(tuple)
WISHES = st.lists(
    st.builds(Wish, SOME, st.builds(IrqAffinity, PATTERNS, PATTERNS, st.booleans())),
    max_size=3,
)
RULES = st.builds(IrqRule, PATTERNS, st.sampled_from([None, *IrqMode]))
BALLOONS = st.lists(st.builds(BalloonCpus, SETS, RULES), max_size=4)


def names(patterns: tuple[str, ...], one: Interrupt) -> bool:
    return any(fnmatchcase(one.name, p) or p == f"{one.number}" for p in patterns)


def expected(placement: Placement, one: Interrupt, allowed: list[int]) -> None:
    """See that *allowed* take an interrupt; if they are none, that it stays."""
    if allowed:
        assert list(placement.cpus[one.number]) == allowed
    else:
        assert one.number not in placement.cpus
    assert (one.number in placement.unplaced) == (not allowed)


@given(INTERRUPTS, WISHES, ROOMS)
def test_a_cpu_takes_what_its_container_and_no_other_one_allows(
    interrupts: tuple[Interrupt, ...], wishes: list[Wish], room: Room
) -> None:
    placement = placed_for_containers(interrupts, wishes, room)

    for one in interrupts:
        claims = [w for w in wishes if names(w.affinity.claim, one)]
        masks = [w for w in wishes if names(w.affinity.mask, one)]
        if not claims and not masks:
            assert one.number not in {*placement.cpus, *placement.unplaced}
            continue
        strict = [w for w in masks if w.affinity.claim_first]

        def takes(cpu: int, claims: list[Wish], masks: list[Wish]) -> bool:
            if claims:
                return any(cpu in w.cpus for w in claims)
            return cpu not in room.banned and not any(cpu in w.cpus for w in masks)

        allowed = [
            cpu
            for cpu in range(COUNT)
            if cpu in room.available
            and not any(cpu in w.cpus for w in strict)
            and takes(cpu, claims, masks)
        ]
        expected(placement, one, allowed)


@given(INTERRUPTS, BALLOONS, ROOMS)
def test_balloons_claim_then_sinks_take_then_others_are_spared(
    interrupts: tuple[Interrupt, ...], balloons: list[BalloonCpus], room: Room
) -> None:
    placement = placed_for_balloons(interrupts, balloons, room)

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
            allowed = [cpu for cpu in sinks if cpu not in room.banned] or sinks
        elif spared and any(cpu in room.available for cpu in one.cpus):
            allowed = [
                cpu
                for cpu in range(COUNT)
                if (
                    cpu not in spared and cpu not in room.banned
                    if cpu in room.available
                    else cpu in one.cpus
                )
            ]
        else:
            assert one.number not in {*placement.cpus, *placement.unplaced}
            continue
        expected(placement, one, allowed)


@given(INTERRUPTS, BALLOONS, SETS, ROOMS)
def test_no_interrupt_is_left_on_cpus_taken_out_but_by_claim_or_need(
    interrupts: tuple[Interrupt, ...],
    balloons: list[BalloonCpus],
    masked: CpuSet,
    room: Room,
) -> None:
    before = placed_for_balloons(interrupts, balloons, room)
    after = without_cpus(before, interrupts, masked, room)

    for one in interrupts:
        was = before.cpus.get(one.number, one.cpus)
        now = after.cpus.get(one.number, one.cpus)
        if one.number in after.claimed or was.isdisjoint(masked):
            assert now == was
        elif one.number in after.unplaced:
            assert was <= masked
            assert room.free <= masked
        else:
            assert now
            assert now.isdisjoint(masked)
            assert now <= was or now <= room.free
    if after.default is not None:
        assert after.default
