"""Speed Select is set as wanted, and as it was once nothing is wanted."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import CpuClass, PctPriority
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.sst import desired_punits
from nri_resmgr.host.knobs.report import KnobDrift, KnobFailure, KnobReport
from nri_resmgr.host.speed_select import isst
from nri_resmgr.host.speed_select.journal import NAME, SstJournal
from nri_resmgr.host.speed_select.knobs import SpeedSelectKnobs
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.topology import Machine
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import KiloHertz
from tests.examples import examples
from tests.host.isst_driver import FeatureControl, IsstDriver, Killed, cpus, drivers
from tests.host.isst_header import ioc, tpmi
from tests.host.isst_mailbox import mailbox
from tests.topology.speed_select import punits_of

PUNIT = Punit(
    *(0, 0, cpus("0-1,4-5")),
    base=Feature.ON,
    turbo=Feature.OFF,
    power=Feature.OFF,
    clos=(
        Clos(cpus=cpus("0-1,4-5")),
        Clos(4, KiloHertz(800_000), KiloHertz(2_000_000)),
        Clos(),
        Clos(),
    ),
)
MACHINE = msgspec.structs.replace(
    parse_spec("2s2c2t"),
    has_speed_select=True,
    speed_select=(
        PUNIT,
        msgspec.structs.replace(
            PUNIT,
            package=1,
            cpus=cpus("2-3,6-7"),
            clos=(Clos(cpus=cpus("2-3,6-7")), *PUNIT.clos[1:]),
        ),
    ),
)
CLASSES = {
    "high": CpuClass(name="high", pct_priority=PctPriority.HIGH),
    "low": CpuClass(name="low", pct_priority=PctPriority.LOW, max=KiloHertz(1_500_000)),
}
FIRST, SECOND = "/dev/isst_interface punit 0/0", "/dev/isst_interface punit 1/0"


def wanted_of(machine: Machine, high: str) -> tuple[Punit, ...]:
    facts = CpuKnobFacts(
        cores=tuple(core.cpus for core in machine.cores), punits=machine.speed_select
    )
    return desired_punits(CLASSES, {"high": cpus(high)}, facts)


WANTED = wanted_of(MACHINE, "0,4")


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir.open(str(tmp_path / "state"))


def knobs_of(
    driver: IsstDriver, state: StateDir, boot: str = "boot"
) -> SpeedSelectKnobs:
    return SpeedSelectKnobs(
        driver.opened, driver.machine.cores, SstJournal(state, boot)
    )


both = pytest.mark.parametrize("kind", [0, 1], ids=["tpmi", "mailbox"])


def test_ioctls_have_the_kernels_numbers() -> None:
    assert ioc("w", 11) == isst.PERF_SET_FEATURE
    assert isst.PERF_FEATURE.pack(1, 2, 3) == bytes(FeatureControl(1, 2, 3))


@both
def test_punits_are_set_and_restored(kind: int, state: StateDir) -> None:
    driver = drivers(MACHINE)[kind]
    knobs = knobs_of(driver, state)

    assert knobs.apply(WANTED) == KnobReport(written=(FIRST, SECOND))
    assert driver.machine.speed_select == WANTED
    assert knobs.verify(WANTED) == ()
    assert knobs.with_originals(driver.machine.speed_select) == MACHINE.speed_select

    before = driver.writes
    assert knobs.apply(WANTED) == KnobReport()
    assert driver.writes == before

    assert knobs.restore_all() == KnobReport(restored=(FIRST, SECOND))
    assert driver.machine == MACHINE
    assert state.read(NAME) is None


@both
def test_only_differing_punits_are_written(kind: int, state: StateDir) -> None:
    driver = drivers(MACHINE)[kind]
    knobs = knobs_of(driver, state)
    knobs.apply(WANTED)
    before = driver.writes

    assert knobs.apply(wanted_of(MACHINE, "0-1")) == KnobReport(written=(FIRST,))
    assert driver.writes == before + 1


@both
def test_killed_at_any_write_the_next_one_puts_all_back(
    kind: int, tmp_path: Path
) -> None:
    whole = drivers(MACHINE)[kind]
    knobs_of(whole, StateDir.open(str(tmp_path / "whole"))).apply(WANTED)
    assert whole.writes > 5

    for number in range(1, whole.writes + 1):
        driver = drivers(MACHINE)[kind]
        driver.fails_at = number
        state = StateDir.open(str(tmp_path / f"state{number}"))
        with pytest.raises(Killed):
            knobs_of(driver, state).apply(WANTED)
        successor = knobs_of(driver, state)

        assert (
            successor.with_originals(driver.machine.speed_select)
            == MACHINE.speed_select
        )
        assert successor.apply(()).failed == ()
        assert driver.machine == MACHINE
        assert state.read(NAME) is None


def test_a_successor_goes_on_from_where_it_is(state: StateDir) -> None:
    driver = IsstDriver(MACHINE)
    knobs_of(driver, state).apply(WANTED)
    before = driver.writes
    successor = knobs_of(driver, state)

    assert successor.apply(WANTED) == KnobReport()
    assert driver.writes == before
    successor.restore_all()
    assert driver.machine == MACHINE


def test_originals_of_another_boot_are_dropped(state: StateDir) -> None:
    knobs_of(IsstDriver(MACHINE), state).apply(WANTED)
    driver = IsstDriver(MACHINE)  # the firmware has set all anew

    assert knobs_of(driver, state, "another").restore_all() == KnobReport()
    assert driver.writes == 0


def test_a_refused_write_is_reported_and_retried(state: StateDir) -> None:
    driver = IsstDriver(MACHINE)
    driver.refuses = errno.EPERM
    knobs = knobs_of(driver, state)

    report = knobs.apply(WANTED[:1])
    assert report == KnobReport(
        failed=(
            KnobFailure(
                FIRST,
                "turbo on, core power on, ordered, clos 0: 0,4, "
                "clos 3: 1,5 min-1500000 kHz",
                "operation not permitted",
            ),
        )
    )
    driver.refuses = 0
    assert knobs.apply(WANTED[:1]) == KnobReport(written=(FIRST,))
    assert driver.machine.speed_select == (WANTED[0], MACHINE.speed_select[1])


def test_changes_by_other_programs_are_detected_and_repaired(state: StateDir) -> None:
    driver = IsstDriver(MACHINE)
    knobs = knobs_of(driver, state)
    knobs.apply(WANTED)
    driver.machine = msgspec.structs.replace(
        driver.machine,
        speed_select=(msgspec.structs.replace(WANTED[0], turbo=Feature.OFF), WANTED[1]),
    )

    expected = "turbo on, core power on, ordered, clos 0: 0,4, clos 3: 1,5 "
    expected += "min-1500000 kHz"
    found = expected.replace("turbo on", "turbo off")
    assert knobs.verify(WANTED) == (KnobDrift(FIRST, expected, found),)
    assert knobs.apply(WANTED, again=True) == KnobReport(written=(FIRST,))
    assert driver.machine.speed_select == WANTED


def test_a_missing_punit_is_reported(state: StateDir) -> None:
    driver = IsstDriver(MACHINE)
    lost = msgspec.structs.replace(WANTED[0], id=5)
    knobs = knobs_of(driver, state)

    (failure,) = knobs.apply((lost,)).failed
    assert (failure.path, failure.why) == (
        "/dev/isst_interface punit 0/5",
        "no such punit",
    )
    ((path, found),) = [(one.path, one.found) for one in knobs.verify((lost,))]
    assert (path, found) == (failure.path, None)


@examples(0.3)
@given(data=st.data(), is_tpmi=st.booleans(), high=st.sets(st.integers(0, 7)))
def test_any_punits_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    is_tpmi: bool,  # noqa: FBT001 - drawn by name
    high: set[int],
) -> None:
    machine = data.draw(whole_cores(by_die=not is_tpmi))
    driver = IsstDriver(machine, tpmi if is_tpmi else mailbox)
    state = StateDir.open(str(tmp_path_factory.mktemp("state")))
    knobs = knobs_of(driver, state)
    wanted = wanted_of(machine, ",".join(map(str, sorted(high))))

    assert knobs.apply(wanted).failed == ()
    able = [p for p in driver.machine.speed_select if p.clos]
    assert able == list(wanted)
    assert knobs.restore_all().failed == ()
    assert driver.machine == machine


@st.composite
def whole_cores(draw: st.DrawFn, *, by_die: bool) -> Machine:
    """Draw punits whose turbo and core power hardware could have."""
    machine = draw(punits_of(parse_spec("2s2c"), by_die=by_die))
    found = [_possible(punit) for punit in machine.speed_select]
    return msgspec.structs.replace(
        machine, has_speed_select=True, speed_select=tuple(found)
    )


def _possible(punit: Punit) -> Punit:
    """Leave out what is not reported of a punit, and turbo of no real hardware."""
    is_lame = punit.turbo is Feature.ON and punit.power is not Feature.ON
    is_able = punit.power is not Feature.UNSUPPORTED
    return msgspec.structs.replace(
        punit,
        levels=(punit.level,),
        turbo=Feature.OFF if is_lame else punit.turbo,
        buckets=(),
        base=Feature.OFF,
        order=punit.order if is_able else ClosOrder.PROPORTIONAL,
    )


def test_a_profile_without_core_power_is_left_alone(state: StateDir) -> None:
    driver = IsstDriver(MACHINE)
    knobs = knobs_of(driver, state)
    knobs.apply(WANTED[:1])
    # Another profile was chosen, of which the punit reports less.
    less = msgspec.structs.replace(PUNIT, power=Feature.UNSUPPORTED, clos=())
    others = MACHINE.speed_select[1:]
    driver.machine = msgspec.structs.replace(MACHINE, speed_select=(less, *others))
    before = driver.writes

    assert knobs.restore_all() == KnobReport(restored=(FIRST,))
    assert driver.writes == before


def test_cores_that_came_online_since_stay_where_they_are(state: StateDir) -> None:
    small = msgspec.structs.replace(
        PUNIT, cpus=cpus("0,4"), clos=(Clos(cpus=cpus("0,4")), *PUNIT.clos[1:])
    )
    SstJournal(state, "boot").write((small,))
    driver = IsstDriver(msgspec.structs.replace(MACHINE, speed_select=WANTED))

    knobs_of(driver, state).apply(WANTED[1:])
    homes = [str(clos.cpus) for clos in driver.punit(0, 0).clos]
    assert homes == ["0,4", "", "", "1,5"]
    assert driver.punit(0, 0).power is Feature.OFF
