"""What irqbalance leaves alone by itself, and what has to be sent to it."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.irqbalance import (
    Bans,
    bans_for,
    bans_of_process,
    misplaced_interrupts,
    requests_for,
)
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
from nri_resmgr.values import NO_CPUS, CpuSet

IRQ_CPUS = InterruptCpus(CpuSet.parse("2-7"), default=CpuSet.parse("0-7"))
# As irqbalance leaves them: each on one CPU.
DISK = Interrupt(28, "nvme0q0", CpuSet.of(4))
NIC = Interrupt(31, "eth0-rx-0", CpuSet.of(2))
ALL = (DISK, NIC)


def bans(cpus: str = "", *interrupts: int) -> Bans:
    return Bans(CpuSet.parse(cpus), frozenset(interrupts))


@pytest.mark.parametrize(
    ("environ", "arguments", "expected"),
    [
        pytest.param("PATH=/bin", "irqbalance", bans("7"), id="what the kernel says"),
        pytest.param("IRQBALANCE_BANNED_CPULIST=0-1,4", "", bans("0-1,4"), id="a list"),
        pytest.param(
            "IRQBALANCE_BANNED_CPUS=1,0000000f", "", bans("0-3,32"), id="mask"
        ),
        pytest.param(
            "IRQBALANCE_BANNED_CPUS=f|IRQBALANCE_BANNED_CPULIST=9",
            "",
            bans("0-3"),
            id="a mask goes before a list",
        ),
        pytest.param(
            "IRQBALANCE_BANNED_CPULIST=9|IRQBALANCE_BANNED_CPUS=f",
            "",
            bans("0-3"),
            id="whatever their order",
        ),
        pytest.param(
            "IRQBALANCE_BANNED_CPUS=|IRQBALANCE_BANNED_CPULIST=",
            "",
            bans("7"),
            id="an empty one is as none",
        ),
        pytest.param("IRQBALANCE_BANNED_CPUS=0", "", bans(), id="no CPU at all"),
        pytest.param("IRQBALANCE_BANNED_CPULIST=x", "", bans("7"), id="nonsense"),
        pytest.param(
            "",
            "irqbalance|--foreground|--banirq=28|-i|31|--banirq|33|--banmod=e1000|-t|5",
            bans("7", 28, 31, 33),
            id="interrupts",
        ),
    ],
)
def test_bans_are_read_from_environment_and_arguments(
    environ: str, arguments: str, expected: Bans
) -> None:
    rows, words = environ.replace("|", "\0"), arguments.replace("|", "\0")

    assert bans_of_process(rows, words, CpuSet.of(7)) == expected


@pytest.mark.parametrize(
    ("balloons", "expected"),
    [
        pytest.param([("4-5", "", IrqMode.ISOLATE)], bans("4-5"), id="CPUs are enough"),
        pytest.param([("4-5", "eth*", None)], bans("", 31), id="a claim"),
        pytest.param(
            [("6-7", "", IrqMode.SINK)], bans("0-5"), id="a sink: all other CPUs"
        ),
        pytest.param(
            [("6", "", IrqMode.SINK), ("4", "31", IrqMode.ISOLATE)],
            bans("0-5,7", 31),
            id="a sink and a claim",
        ),
        pytest.param(
            [("4", "31", None), ("2-3,5-7", "", IrqMode.ISOLATE)],
            bans("2-3,5-7", 31),
            id="a claim of the only CPU that is not isolated",
        ),
    ],
)
def test_bans_follow_from_the_rules_of_balloons(
    balloons: list[tuple[str, str, IrqMode | None]], expected: Bans
) -> None:
    found = [
        BalloonCpus(CpuSet.parse(cpus), IrqRule(tuple(claim.split()), mode))
        for cpus, claim, mode in balloons
    ]

    assert bans_for(placed_for_balloons(ALL, found, IRQ_CPUS), IRQ_CPUS) == expected


def test_cpus_that_irqbalance_bans_itself_ban_no_interrupt() -> None:
    balloons = [BalloonCpus(CpuSet.of(4), IrqRule((), IrqMode.ISOLATE))]
    irq_cpus = msgspec.structs.replace(IRQ_CPUS, banned=CpuSet.of(2))
    placement = placed_for_balloons(ALL, balloons, irq_cpus)

    assert bans_for(placement, irq_cpus) == bans("4")


def test_interrupts_masked_from_some_cpus_are_banned_from_irqbalance() -> None:
    containers = [ContainerCpus(CpuSet.of(3), IrqAffinity(mask=("nvme*",)))]
    masked = placed_for_containers(ALL, containers, IRQ_CPUS)
    both = without_cpus(masked, ALL, CpuSet.of(2), IRQ_CPUS)

    assert bans_for(masked, IRQ_CPUS) == bans("", 28)
    # The other one is on any CPU but the second.
    assert bans_for(both, IRQ_CPUS) == bans("2", 28)


@pytest.mark.parametrize(
    ("disk", "nic", "stray"),
    [
        pytest.param("2-3,7", "6", [], id="as they were placed"),
        pytest.param("7", "6", [], id="one CPU of those that are left"),
        pytest.param("0", "6", [], id="a CPU that is not ours"),
        pytest.param("4", "6", [28], id="a CPU that is spared"),
        pytest.param("2-3,5", "6", [28], id="one of them is spared"),
        pytest.param("7", "7", [31], id="not where it is claimed"),
        pytest.param("7", "6-7", [31], id="nor only there"),
    ],
)
def test_a_choice_of_irqbalance_is_as_good_unless_it_is_spared(
    disk: str, nic: str, stray: list[int]
) -> None:
    rules = [("4-5", IrqRule((), IrqMode.ISOLATE)), ("6", IrqRule(("eth*",)))]
    balloons = [BalloonCpus(CpuSet.parse(cpus), rule) for cpus, rule in rules]
    placement = placed_for_balloons(ALL, balloons, IRQ_CPUS)
    present = (
        Interrupt(28, DISK.name, CpuSet.parse(disk)),
        Interrupt(31, NIC.name, CpuSet.parse(nic)),
        Interrupt(33, "ttyS0", CpuSet.of(4)),
    )

    assert [
        one.number for one in misplaced_interrupts(placement, present, IRQ_CPUS)
    ] == stray


def test_an_empty_placement_needs_no_bans() -> None:
    assert not bans_for(InterruptPlacement(), IRQ_CPUS)


@pytest.mark.parametrize(
    ("wanted", "own", "requests"),
    [
        pytest.param(
            bans("4-5", 31, 28),
            bans(),
            ("settings cpus 4-5", "settings ban irqs 28 31"),
            id="both",
        ),
        pytest.param(
            bans("1", 28),
            bans("1", 28),
            ("settings cpus NULL", "settings ban irqs 28"),
            id="as it was started",
        ),
        pytest.param(
            bans(), bans(), ("settings cpus NULL", "settings ban irqs NONE"), id="none"
        ),
    ],
)
def test_requests(wanted: Bans, own: Bans, requests: tuple[str, ...]) -> None:
    assert requests_for(wanted, own) == (requests, ())


def test_a_request_is_not_longer_than_it_reads() -> None:
    many = frozenset(range(1000, 1200)) | {0}
    requests, left = requests_for(Bans(NO_CPUS, many), Bans())

    assert len(requests[1]) <= 480
    sent = [int(word) for word in requests[1].split()[3:]]
    assert (sent, list(left)) == (
        list(range(1000, 1000 + len(sent))),
        [0, *range(1000 + len(sent), 1200)],
    )
