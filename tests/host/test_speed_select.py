"""What the Speed Select driver reports is what the model says, or nothing is."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.speed_select import isst
from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import (
    Clos,
    ClosOrder,
    Feature,
    Punit,
    TurboBucket,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.examples import examples
from tests.host import isst_header as header
from tests.host.isst_driver import RecordedIsst
from tests.host.isst_mailbox import letter, mailbox
from tests.topology.speed_select import punits_of

cpus = CpuSet.parse
DEVICE = "/dev/isst_interface"


def tree_of(machine: Machine, replies: header.Replies) -> RecordedTree:
    files = sysfs_files(machine)
    return RecordedTree(
        files.files, {**files.links, DEVICE: DEVICE}, RecordedIsst(replies)
    )


def read(machine: Machine, replies: header.Replies) -> tuple[Machine, list[str]]:
    """Read a machine whose driver answers so; return why it has no facts."""
    with capture_logs() as logs:
        found = read_machine(tree_of(machine, replies))
    return found, [str(e["why"]) for e in logs if e["event"] == "topology.fallback"]


@pytest.mark.parametrize(
    ("number", "direction", "order"),
    [
        (isst.GET_PLATFORM_INFO, "r", 0),
        (isst.GET_PHY_ID, "rw", 1),
        (isst.IO_CMD, "w", 2),
        (isst.MBOX_COMMAND, "rw", 3),
        (isst.CORE_POWER_STATE, "rw", 6),
        (isst.CLOS_PARAM, "rw", 7),
        (isst.CLOS_ASSOC, "rw", 8),
        (isst.PERF_LEVELS, "rw", 9),
        (isst.GET_BASE_FREQ_CPU_MASK, "r", 15),
        (isst.GET_TURBO_FREQ_INFO, "r", 16),
    ],
)
def test_ioctls_have_the_kernels_numbers(
    number: int, direction: str, order: int
) -> None:
    assert number == header.ioc(direction, order)


@pytest.mark.parametrize(
    ("layout", "answer", "fields"),
    [
        (isst.PLATFORM_INFO, header.PlatformInfo(1, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
        (isst.CORE_POWER, header.CorePower(*range(6)), tuple(range(6))),
        (isst.CLOS, header.ClosParam(*range(7)), tuple(range(7))),
        (isst.PERF_LEVEL, header.PerfLevelInfo(*range(11)), tuple(range(11))),
        (
            isst.CPU_MASK,
            header.CpuMask(1, 2, 3, 4, 1 << 63, 6),
            (1, 2, 3, 4, 1 << 63, 6),
        ),
    ],
)
def test_structures_are_laid_out_as_the_compiler_does(
    layout: struct.Struct, answer: Any, fields: tuple[int, ...]
) -> None:
    assert layout.unpack(bytes(answer)) == fields


# Two punits in package 0, one in package 1, and two threads to a core.
RICH = msgspec.structs.replace(
    parse_spec("2s4c2t"),
    has_speed_select=True,
    speed_select=(
        Punit(
            package=0,
            id=0,
            cpus=cpus("0-1,8-9"),
            level=2,
            levels=(0, 2, 4),
            is_locked=True,
            base=Feature.ON,
            base_cpus=cpus("1,9"),
            turbo=Feature.ON,
            buckets=(
                TurboBucket(2, KiloHertz(4_600_000)),
                TurboBucket(8, KiloHertz(4_300_000)),
            ),
            power=Feature.ON,
            order=ClosOrder.ORDERED,
            clos=(
                Clos(0, KiloHertz(2_700_000), None, cpus("0,8")),
                Clos(5),
                Clos(6, None, KiloHertz(3_100_000)),
                Clos(15, KiloHertz(800_000), KiloHertz(2_000_000), cpus("1,9")),
            ),
        ),
        Punit(0, 1, cpus("2-3,10-11"), base=Feature.OFF, turbo=Feature.OFF),
        Punit(1, 0, cpus("4-7,12-15")),
    ),
)


def test_punits_of_tpmi() -> None:
    assert read(RICH, header.tpmi(RICH)) == (RICH, [])


def reported_facts(punit: Punit) -> Punit:
    """Leave out what no driver could report of a punit that lacks the feature."""
    lacking: dict[str, Any] = {
        "buckets": tuple(sorted(punit.buckets, key=lambda b: b.cores))
    }
    if punit.base is Feature.UNSUPPORTED:
        lacking["base_cpus"] = cpus("")
    if punit.turbo is Feature.UNSUPPORTED:
        lacking["buckets"] = ()
    if punit.power is Feature.UNSUPPORTED:
        lacking["order"] = ClosOrder.PROPORTIONAL
    return msgspec.structs.replace(punit, **lacking)


def with_given_facts(machine: Machine) -> Machine:
    punits = tuple(reported_facts(punit) for punit in machine.speed_select)
    return msgspec.structs.replace(machine, has_speed_select=True, speed_select=punits)


@given(punits_of(parse_spec("2s5c")).map(with_given_facts))
@examples(0.3)
def test_tpmi_reports_the_facts_that_it_was_asked_about(machine: Machine) -> None:
    assert read(machine, header.tpmi(machine)) == (machine, [])


def with_profiles_of_a_mailbox(machine: Machine, last: int) -> Machine:
    """Give punits all profiles up to *last*, or their own one alone."""
    punits = tuple(
        msgspec.structs.replace(
            p, levels=tuple(range(last + 1)) if last else (p.level,)
        )
        for p in machine.speed_select
    )
    return msgspec.structs.replace(machine, speed_select=punits)


@given(
    st.builds(
        with_profiles_of_a_mailbox,
        punits_of(parse_spec("2s2d3c"), by_die=True).map(with_given_facts),
        st.integers(0, 4),
    )
)
@examples(0.3)
def test_a_mailbox_reports_the_facts_that_it_was_asked_about(machine: Machine) -> None:
    assert read(machine, mailbox(machine)) == (machine, [])


@pytest.mark.parametrize("driver", [header.tpmi, mailbox])
def test_many_cores_are_asked_about_64_at_a_time(driver: Any) -> None:
    members = cpus("0-62")
    clos = (Clos(), Clos(cpus=members), Clos(), Clos())
    machine = msgspec.structs.replace(
        parse_spec("3s63c"),
        has_speed_select=True,
        speed_select=(
            Punit(
                *(0, 0, members),
                base=Feature.ON,
                base_cpus=cpus("0,31-32,62"),
                power=Feature.ON,
                clos=clos,
            ),
            Punit(1, 0, cpus("63-125")),
            Punit(2, 0, cpus("126-188")),
        ),
    )

    assert read(machine, driver(machine)) == (machine, [])


ONE_DIE = msgspec.structs.replace(
    parse_spec("4c2t"),
    has_speed_select=True,
    speed_select=(
        msgspec.structs.replace(
            RICH.speed_select[0], id=0, cpus=cpus("0-7"), base_cpus=cpus("1,5"),
            levels=(0, 1, 2),
            clos=(Clos(cpus=cpus("0,2-4,6-7")), Clos(), Clos(), Clos(cpus=cpus("1,5"))),
        ),
    ),
)  # fmt: skip


@pytest.mark.parametrize("driver", [header.tpmi, mailbox])
def test_any_refusal_leaves_no_facts_and_a_line_in_the_log(driver: Any) -> None:
    replies = driver(ONE_DIE)
    assert read(ONE_DIE, replies) == (ONE_DIE, [])

    for refused in replies:
        others = {key: reply for key, reply in replies.items() if key != refused}
        machine, why = read(ONE_DIE, others)
        assert machine == msgspec.structs.replace(ONE_DIE, speed_select=())
        assert why == ["[Errno 25] Inappropriate ioctl for device"]


FIRST_FOUR = {cpu: cpu << 1 for cpu in range(4)}


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        pytest.param(
            header.platform(1, mmio=0) | header.numbers(ONE_DIE, FIRST_FOUR),
            "the driver lacks the mailbox or the registers",
            id="no registers",
        ),
        pytest.param(
            header.numbers(ONE_DIE, {**FIRST_FOUR, 2: 0xFFFFFFFF}) | header.platform(2),
            "CPU 2 has no number in its punit",
            id="a CPU without a number",
        ),
        pytest.param(
            mailbox(ONE_DIE) | letter(0, 0x7F, 0, 0, 2),
            "performance profiles of version 2, 3 needed",
            id="profiles before Ice Lake",
        ),
        pytest.param(
            {
                key: (result - 1 if result else 0, data)
                for key, (result, data) in mailbox(ONE_DIE).items()
            },
            "3 of 4 commands were done",
            id="a signal came in between",
        ),
    ],
)
def test_answers_that_will_not_do(replies: header.Replies, why: str) -> None:
    machine, reasons = read(ONE_DIE, replies)

    assert (machine.speed_select, reasons) == ((), [why])


def answered_with(key: tuple[int, Any], answer: Any) -> header.Replies:
    """Let TPMI answer one question about `ONE_DIE` in another way."""
    request, asked = key
    return header.tpmi(ONE_DIE) | {(request, bytes(asked)): (0, bytes(answer))}


def test_an_impossible_class_of_service_is_ignored() -> None:
    head = header.ClosAssocHead(4, 0, 1)
    asked = header.commands(head, (header.ClosAssoc(0, 0, n, 0) for n in range(4)))
    answer = header.commands(head, (header.ClosAssoc(0, 0, n, n * 2) for n in range(4)))

    assert read(ONE_DIE, answered_with((isst.CLOS_ASSOC, asked), answer)) == (
        msgspec.structs.replace(ONE_DIE, speed_select=()),
        ["unknown class of service 6"],
    )


def test_a_package_beyond_the_drivers_ids_is_not_asked_about() -> None:
    machine = parse_spec("1c")
    far = msgspec.structs.replace(
        machine, cores=(msgspec.structs.replace(machine.cores[0], package=256),)
    )
    replies = header.platform(2) | header.numbers(far, {0: 0})

    assert read(far, replies)[1] == ["id 256 exceeds the driver's limit 255"]


def test_where_profiles_cannot_be_chosen_there_is_one() -> None:
    # The driver hands out two reserved bits with the lock.
    levels = header.PerfLevelInfo(0, 0, level_mask=0xFF, current_level=2, locked=6)
    replies = answered_with((isst.PERF_LEVELS, header.PerfLevelInfo(0, 0)), levels)

    (punit,) = read(ONE_DIE, replies)[0].speed_select
    assert (punit.level, punit.levels, punit.is_locked) == (2, (2,), False)
