"""What CPU classes want of Speed Select, worked out by hand."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, PctPriority
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.sst import desired_punits
from nri_resmgr.topology.speed_select import (
    Clos,
    ClosOrder,
    Feature,
    Punit,
    TurboBucket,
)
from nri_resmgr.values import KiloHertz
from tests.classes.cpu.machines import SERVER, cpus


def clos(text: str, low: int = 0, high: int = 0, weight: int = 0) -> Clos:
    bottom, top = (KiloHertz(one * 100_000) if one else None for one in (low, high))
    return Clos(weight, bottom, top, cpus(text))


#  punit 0/0: cores {0,4} {1,5}     punit 1/0: cores {2,6} {3,7}
FIRST = Punit(
    *(0, 0, cpus("0-1,4-5")),
    turbo=Feature.OFF,
    buckets=(
        TurboBucket(1, KiloHertz(4_000_000)),
        TurboBucket(2, KiloHertz(3_900_000)),
    ),
    power=Feature.OFF,
    clos=(clos("0-1,4-5"), clos("", 8, 20, weight=4), clos(""), clos("")),
)
SECOND = msgspec.structs.replace(
    FIRST,
    package=1,
    cpus=cpus("2-3,6-7"),
    turbo=Feature.UNSUPPORTED,
    buckets=(),
    base_cpus=cpus("2,6"),
    clos=(clos("2,6"), clos("3,7"), clos(""), clos("")),
)
THIRD = Punit(2, 0, cpus("8"), power=Feature.UNSUPPORTED)
FACTS = msgspec.structs.replace(
    SERVER, has_speed_select=True, punits=(FIRST, SECOND, THIRD)
)

HIGH = CpuClass(
    name="high",
    pct_priority=PctPriority.HIGH,
    min=FrequencyWord.BASE,
    max=KiloHertz(1),
    pct_max=FrequencyWord.TURBO,
)
LOW = CpuClass(name="low", pct_priority=PctPriority.LOW, max=KiloHertz(2_550_000))
PLAIN = CpuClass(name="plain")
ONE = CpuClass(name="one", sst_clos=1)
TWO = CpuClass(name="two", sst_clos=2)
LOST = CpuClass(name="lost", sst_clos=4)


def wanted(facts: CpuKnobFacts, *pairs: tuple[CpuClass, str]) -> tuple[Punit, ...]:
    classes = {one.name: one for one, _ in pairs}
    return desired_punits(classes, {one.name: cpus(t) for one, t in pairs}, facts)


def managed(punit: Punit, *classes: Clos) -> Punit:
    turbo = Feature.UNSUPPORTED if punit is SECOND else Feature.ON
    return msgspec.structs.replace(
        punit,
        power=Feature.ON,
        order=ClosOrder.ORDERED,
        turbo=turbo,
        clos=classes,
    )


def test_priorities_rank_all_cores() -> None:
    second = SECOND.clos[1]

    assert wanted(FACTS, (HIGH, "0,4"), (LOW, "2"), (PLAIN, "1,5")) == (
        managed(
            FIRST,
            clos("0,4", 20, 38),
            FIRST.clos[1],
            clos(""),
            clos("1,5", 0, 25),
        ),
        managed(
            SECOND,
            clos("", 20, 38),
            msgspec.structs.replace(second, cpus=cpus("")),
            clos(""),
            clos("2-3,6-7", 0, 25),
        ),
    )


def test_without_a_low_priority_all_others_are_with_the_high_one() -> None:
    first, _ = wanted(FACTS, (HIGH, "0"), (PLAIN, "1"))

    assert [str(one.cpus) for one in first.clos] == ["0-1,4-5", "", "", ""]


def test_a_core_has_the_highest_priority_of_its_threads() -> None:
    first, _ = wanted(FACTS, (LOW, "0-1"), (HIGH, "4"))

    assert [str(one.cpus) for one in first.clos] == ["0,4", "", "", "1,5"]


def test_a_minimum_is_cut_to_its_maximum() -> None:
    one = msgspec.structs.replace(
        HIGH, pct_min=FrequencyWord.TURBO, pct_max=FrequencyWord.BASE
    )
    first, _ = wanted(FACTS, (one, "0"))

    assert first.clos[0] == clos("0-1,4-5", 20, 20)


def test_numbers_put_only_their_own_cores_into_classes_of_service() -> None:
    assert wanted(FACTS, (ONE, "0,4"), (TWO, "5"), (PLAIN, "2-3")) == (
        msgspec.structs.replace(
            FIRST,
            clos=(
                clos(""),
                msgspec.structs.replace(FIRST.clos[1], cpus=cpus("0,4")),
                clos("1,5"),
                clos(""),
            ),
        ),
        SECOND,
    )


def test_an_invalid_class_of_service_moves_no_core() -> None:
    assert wanted(FACTS, (LOST, "0-7")) == (FIRST, SECOND)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(FACTS, id="no class speaks of it"),
        pytest.param(SERVER, id="and no punit is there"),
    ],
)
def test_without_such_classes_nothing_is_wanted(facts: CpuKnobFacts) -> None:
    assert wanted(facts, (PLAIN, "0-7")) == ()
