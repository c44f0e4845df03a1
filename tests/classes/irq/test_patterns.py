"""Which interrupts a pattern names, which may be moved, and which are new."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.irq.interrupts import (
    DeniedInterrupt,
    Interrupt,
    changed_since,
    check_allowed,
    controlled,
    is_named,
)
from nri_resmgr.values import CpuSet
from nri_resmgr.values.globs import BadGlob, check_glob

CPUS = CpuSet.of(0, 1)
TIMER = Interrupt(0, "IO-APIC 2-edge timer", CPUS)
DISK = Interrupt(28, "PCI-MSIX-0000:00:01.0 0-edge nvme0q0", CPUS)
NIC = Interrupt(31, "PCI-MSIX-0000:00:04.0 1-edge eth0-rx-0", CPUS)
CARD = Interrupt(130, "PCI-MSI 0-edge mlx5_comp0@pci:0000:3b:00.0", CPUS)
ALL = (TIMER, DISK, NIC, CARD)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        pytest.param("31", {31}, id="a number is an exact one"),
        pytest.param("3", set(), id="and no prefix"),
        pytest.param("3*", set(), id="nor does a glob look at numbers"),
        pytest.param("*", {0, 28, 31, 130}, id="all"),
        pytest.param("*eth0-*", {31}, id="a device"),
        pytest.param("eth0-rx-0", set(), id="a glob is of the whole name"),
        pytest.param("*0000:00:0[14].0*", {28, 31}, id="a set of signs"),
        pytest.param("*0000:00:0[^4].0*", {28}, id="all but a set"),
        pytest.param("IO-APIC*", {0}, id="a chip"),
        pytest.param("PCI-MSI 0-edge ????_comp0@*", {130}, id="single signs"),
        pytest.param("*ETH0*", set(), id="letters have a case"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_a_pattern_is_a_number_or_a_glob_of_the_name(
    pattern: str, named: set[int]
) -> None:
    assert {one.number for one in ALL if is_named(one, pattern)} == named


def test_a_set_without_an_end_is_refused() -> None:
    check_glob("*eth[01]*")
    with pytest.raises(BadGlob):
        check_glob("*eth[01*")


@pytest.mark.parametrize(
    ("controllable", "moved"),
    [
        pytest.param(("*",), {0, 28, 31, 130}, id="all by default"),
        pytest.param((), {0, 28, 31, 130}, id="all where nothing is said"),
        pytest.param(("*nvme*", "31"), {28, 31}, id="some"),
        pytest.param(("none",), set(), id="none"),
    ],
)
def test_only_controllable_interrupts_are_moved(
    controllable: tuple[str, ...], moved: set[int]
) -> None:
    assert {one.number for one in controlled(ALL, controllable)} == moved


@pytest.mark.parametrize(
    ("patterns", "denied"),
    [
        pytest.param(("*nvme*", "31"), None, id="what is allowed"),
        pytest.param(("*usb*",), None, id="what is not there"),
        pytest.param(("*nvme*", "*mlx5*"), ("*mlx5*", 130), id="a glob"),
        pytest.param(("0",), ("0", 0), id="a number"),
        pytest.param(("31", "*"), ("*", 0), id="all: the lowest"),
    ],
)
def test_a_pattern_may_not_name_a_denied_interrupt(
    patterns: tuple[str, ...], denied: tuple[str, int] | None
) -> None:
    found = None
    try:
        check_allowed(patterns, ALL, ("*nvme*", "*eth*"))
    except DeniedInterrupt as error:
        found = (error.pattern, error.interrupt.number)

    assert found == denied


def test_the_denial_names_the_remedy() -> None:
    with pytest.raises(DeniedInterrupt) as raised:
        check_allowed(["*mlx5*"], ALL, ("*nvme*",))

    assert str(raised.value) == (
        "'*mlx5*' names interrupt 130 (PCI-MSI 0-edge mlx5_comp0@pci:0000:3b:00.0), "
        "which controllableInterrupts ['*nvme*'] leaves out; to help, "
        "name fewer interrupts, or allow this one"
    )


def test_interrupts_that_come_go_or_get_another_name_are_noticed() -> None:
    renamed = Interrupt(31, "PCI-MSIX-0000:00:04.0 1-edge nic7-rx-0", CPUS)
    moved = Interrupt(28, DISK.name, CpuSet.of(1))

    assert changed_since((TIMER, DISK, NIC), (moved, renamed, CARD)) == (
        TIMER,
        renamed,
        CARD,
    )
    assert changed_since(ALL, ALL) == ()
