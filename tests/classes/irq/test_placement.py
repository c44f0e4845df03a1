"""Interrupts of a small machine, placed as containers and balloons ask."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import (
    InterruptCpus,
    InterruptPlacement,
    desired_files,
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
from nri_resmgr.values import NO_CPUS, CpuSet

# CPUs 0 and 1 are the system's; the policy works with 2 to 7.
IRQ_CPUS = InterruptCpus(CpuSet.parse("2-7"))
DISK = Interrupt(28, "nvme0q0", CpuSet.parse("0-7"))
NIC = Interrupt(31, "eth0-rx-0", CpuSet.parse("4-5"))
SYSTEM = Interrupt(33, "ttyS0", CpuSet.parse("0-1"))
ALL = (DISK, NIC, SYSTEM)


def texts(placement: InterruptPlacement) -> dict[int, str]:
    return {number: str(cpus) for number, cpus in placement.cpus.items()}


def container(
    cpus: str, claim: str = "", mask: str = "", *, first: bool = False
) -> ContainerCpus:
    affinity = IrqAffinity(tuple(claim.split()), tuple(mask.split()), first)
    return ContainerCpus(CpuSet.parse(cpus), affinity)


def balloon(cpus: str, claim: str = "", mode: IrqMode | None = None) -> BalloonCpus:
    return BalloonCpus(CpuSet.parse(cpus), IrqRule(tuple(claim.split()), mode))


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([], {}, id="no request"),
        pytest.param([container("2-3", "eth*")], {31: "2-3"}, id="a claim"),
        pytest.param(
            [container("2", "eth*"), container("6", "31")],
            {31: "2,6"},
            id="two claim the same",
        ),
        pytest.param(
            [container("2-3", mask="*")],
            {28: "4-7", 31: "4-7", 33: "4-7"},
            id="a mask of all",
        ),
        pytest.param(
            [container("2", mask="28"), container("5", mask="28 eth*")],
            {28: "3-4,6-7", 31: "2-4,6-7"},
            id="masks add up",
        ),
        pytest.param(
            [container("2-3", "eth*", "*")],
            {28: "4-7", 31: "2-3", 33: "4-7"},
            id="a claim wins against a mask of the same container",
        ),
        pytest.param(
            [container("2-3", "eth*"), container("4", "eth*", "*", first=True)],
            {28: "2-3,5-7", 31: "2-3", 33: "2-3,5-7"},
            id="but not where the mask counts against claims",
        ),
    ],
)
def test_containers(containers: list[ContainerCpus], expected: dict[int, str]) -> None:
    assert texts(placed_for_containers(ALL, containers, IRQ_CPUS)) == expected


def test_an_interrupt_without_any_cpu_left_stays_where_it_is() -> None:
    containers = [
        container("2-3", "eth*", "eth*", first=True),
        container("2-7", mask="28"),
    ]
    placement = placed_for_containers(ALL, containers, IRQ_CPUS)

    assert placement == InterruptPlacement({}, frozenset((31,)), (28, 31))


def test_banned_cpus_take_only_claimed_interrupts() -> None:
    irq_cpus = InterruptCpus(IRQ_CPUS.available, CpuSet.parse("6-7"))
    containers = [container("2-3", mask="28"), container("6", "eth*")]

    assert texts(placed_for_containers(ALL, containers, irq_cpus)) == {
        28: "4-5",
        31: "6",
    }


@pytest.mark.parametrize(
    ("balloons", "expected"),
    [
        pytest.param([balloon("2-7")], {}, id="no type says anything"),
        pytest.param(
            [balloon("2", "eth*"), balloon("3", "31"), balloon("", "31")],
            {31: "2-3"},
            id="claims",
        ),
        pytest.param(
            [balloon("2", "eth*"), balloon("4", mode=IrqMode.SINK)],
            {28: "4", 31: "2", 33: "4"},
            id="a sink takes what is not claimed",
        ),
        pytest.param(
            [balloon("4-5", mode=IrqMode.ISOLATE)],
            {28: "0-3,6-7", 31: "2-3,6-7"},
            id="isolated; what is elsewhere stays there",
        ),
        pytest.param(
            [balloon("4", mode=IrqMode.ISOLATE), balloon("7", mode=IrqMode.SINK)],
            {28: "7", 31: "7", 33: "7"},
            id="a sink goes before isolation",
        ),
        pytest.param(
            [balloon("4", "eth*", IrqMode.ISOLATE), balloon("5", mode=IrqMode.ISOLATE)],
            {28: "0-3,6-7", 31: "4"},
            id="an isolated balloon may claim",
        ),
        pytest.param(
            [balloon("", mode=IrqMode.SINK), balloon("", mode=IrqMode.ISOLATE)],
            {},
            id="empty balloons do not count",
        ),
    ],
)
def test_balloons(balloons: list[BalloonCpus], expected: dict[int, str]) -> None:
    assert texts(placed_for_balloons(ALL, balloons, IRQ_CPUS)) == expected


def test_isolation_of_every_cpu_leaves_an_interrupt_where_it_is() -> None:
    isolated = CpuSet.parse("2-7")
    placement = placed_for_balloons(
        ALL, [balloon("2-7", mode=IrqMode.ISOLATE)], IRQ_CPUS
    )

    assert placement == InterruptPlacement(
        {28: CpuSet.parse("0-1")}, unplaced=(31,), spared=isolated
    )


@pytest.mark.parametrize(
    ("mode", "claim", "default"),
    [
        pytest.param(IrqMode.SINK, "", "6-7", id="to the sinks"),
        pytest.param(IrqMode.ISOLATE, "", "0-5", id="away from the isolated"),
        pytest.param(None, "eth*", None, id="as it was"),
    ],
)
def test_interrupts_to_come(
    mode: IrqMode | None, claim: str, default: str | None
) -> None:
    irq_cpus = InterruptCpus(IRQ_CPUS.available, default=CpuSet.parse("0-7"))
    placement = placed_for_balloons(ALL, [balloon("6-7", claim, mode)], irq_cpus)

    assert placement.default == (default and CpuSet.parse(default))


@pytest.mark.parametrize(
    ("masked", "expected", "default"),
    [
        pytest.param("", {}, None, id="nothing"),
        pytest.param("5", {28: "0-4,6-7", 31: "4"}, "0-4,6-7", id="a CPU"),
        pytest.param("4-5", {28: "0-3,6-7", 31: "2-3,6-7"}, "0-3,6-7", id="all it had"),
        pytest.param("0-1", {28: "2-7", 33: "2-7"}, "2-7", id="the system's"),
    ],
)
def test_cpus_are_taken_out_of_all_interrupts(
    masked: str, expected: dict[int, str], default: str | None
) -> None:
    irq_cpus = InterruptCpus(IRQ_CPUS.available, default=CpuSet.parse("0-7"))
    placement = without_cpus(InterruptPlacement(), ALL, CpuSet.parse(masked), irq_cpus)

    assert texts(placement) == expected
    assert placement.default == (default and CpuSet.parse(default))


def test_claims_remain_when_cpus_are_taken_out() -> None:
    claimed = placed_for_containers(ALL, [container("4", "eth*")], IRQ_CPUS)
    placement = without_cpus(claimed, ALL, CpuSet.parse("4-5"), IRQ_CPUS)

    assert texts(placement) == {28: "0-3,6-7", 31: "4"}


def test_taking_out_every_cpu_leaves_interrupts_where_they_are() -> None:
    irq_cpus = InterruptCpus(IRQ_CPUS.available, default=CpuSet.parse("2-3"))
    masked = CpuSet.parse("2-7")
    placement = without_cpus(InterruptPlacement(), ALL, masked, irq_cpus)

    assert placement == InterruptPlacement(
        {28: CpuSet.parse("0-1")}, unplaced=(31,), spared=masked
    )


def test_the_files_are_a_mask_and_lists_in_order() -> None:
    placement = InterruptPlacement(
        {31: CpuSet.parse("2-3,6"), 28: CpuSet.of(40)}, default=CpuSet.parse("0-5,33")
    )

    assert list(desired_files(placement, (NIC, DISK)).items()) == [
        ("/proc/irq/default_smp_affinity", "00000002,0000003f"),
        ("/proc/irq/28/smp_affinity_list", "40"),
        ("/proc/irq/31/smp_affinity_list", "2-3,6"),
    ]
    assert desired_files(InterruptPlacement(), ALL) == {}
    assert InterruptCpus(NO_CPUS).free == NO_CPUS
