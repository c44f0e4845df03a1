"""Host files that are refused, gone, changed by others, or left by an earlier one."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.knobs.files import is_knob, is_same
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.knobs.report import KnobDrift, KnobFailure, KnobReport
from nri_resmgr.host.state_dir import StateDir
from tests.host.knob_kernel import DEFAULT, GOVERNOR, IRQ, MAX, MIN, Kernel

ORIGINALS = {
    MIN: "800",
    MAX: "3500",
    GOVERNOR: "powersave",
    IRQ: "0-3",
    DEFAULT: "0000000f",
}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    opened = StateDir.open(f"{tmp_path}/state")
    yield opened
    opened.close()


def kernel(**refusals: int) -> Kernel:
    return Kernel(dict(ORIGINALS), {globals()[n]: why for n, why in refusals.items()})


def knobs_of(files: Kernel, state: StateDir, boot: str = "first") -> Knobs:
    return Knobs(files, KnobJournal(state, boot))


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        pytest.param(("800", "1000"), ("2000", "3000"), MAX, id="up: the maximum"),
        pytest.param(("800", "1000"), ("2050", "3050"), MAX, id="up: rounded"),
        pytest.param(("2000", "3000"), ("800", "1000"), MIN, id="down: the minimum"),
        pytest.param(("800", "3000"), ("900", "2000"), MIN, id="narrower: any"),
        pytest.param(("900", "2000"), ("800", "3000"), MAX, id="wider: any"),
    ],
)
def test_a_minimum_never_crosses_its_maximum(
    state: StateDir, before: tuple[str, str], after: tuple[str, str], first: str
) -> None:
    files = kernel()
    files.files |= zip((MIN, MAX), before, strict=True)
    report = knobs_of(files, state).apply(dict(zip((MIN, MAX), after, strict=True)))

    assert report.failed == ()
    assert [path for path, _ in files.writes] == [first, {MIN: MAX, MAX: MIN}[first]]


def test_files_are_written_in_the_order_of_the_mapping_and_put_back_in_the_other(
    state: StateDir,
) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    knobs.apply({GOVERNOR: "performance", IRQ: "1", DEFAULT: "2"})
    knobs.restore_all()

    written = [GOVERNOR, IRQ, DEFAULT]
    assert [path for path, _ in files.writes] == [*written, *reversed(written)]


@pytest.mark.parametrize("why", [errno.EIO, errno.EPERM])
def test_an_interrupt_that_cannot_be_moved_is_tried_once(
    state: StateDir, why: int
) -> None:
    files = kernel(IRQ=why)
    knobs = knobs_of(files, state)
    reports = [knobs.apply({IRQ: "1"}), knobs.apply({IRQ: "2"})]
    refused, drifts = dict(knobs.refused), knobs.verify({IRQ: "2"})
    files.refusals.clear()
    reports += [knobs.apply({}), knobs.apply({IRQ: "2"})]

    words = {errno.EIO: "input/output error", errno.EPERM: "operation not permitted"}
    assert reports == [
        KnobReport(failed=(KnobFailure(IRQ, "1", words[why]),)),
        KnobReport(),
        KnobReport(),
        KnobReport(written=(IRQ,)),
    ]
    assert (refused, drifts) == ({IRQ: words[why]}, ())


def test_any_other_refusal_is_reported_each_time_and_tried_again(
    state: StateDir,
) -> None:
    files = kernel(GOVERNOR=errno.EIO)
    knobs = knobs_of(files, state)
    reports = [knobs.apply({GOVERNOR: "performance"}) for _ in range(2)]
    files.refusals.clear()
    reports.append(knobs.apply({GOVERNOR: "performance"}))

    failure = KnobFailure(GOVERNOR, "performance", "input/output error")
    assert reports == [
        KnobReport(failed=(failure,)),
        KnobReport(failed=(failure,)),
        KnobReport(written=(GOVERNOR,)),
    ]
    assert (
        str(failure) == f"cannot write 'performance' to {GOVERNOR}: input/output error"
    )


def test_a_refused_change_of_a_written_file_is_drift(state: StateDir) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    knobs.apply({GOVERNOR: "performance"})
    files.refusals[GOVERNOR] = errno.EBUSY
    knobs.apply({GOVERNOR: "schedutil"})

    assert knobs.verify({GOVERNOR: "schedutil"}) == (
        KnobDrift(GOVERNOR, "schedutil", "performance"),
    )


def test_a_file_that_cannot_be_put_back_stays_in_the_journal(state: StateDir) -> None:
    files = kernel()
    knobs_of(files, state).apply({GOVERNOR: "performance"})
    files.refusals[GOVERNOR] = errno.EBUSY
    failed = knobs_of(files, state).apply({})
    files.refusals.clear()
    restored = knobs_of(files, state).apply({})

    failure = KnobFailure(GOVERNOR, "powersave", "device or resource busy")
    assert failed == KnobReport(failed=(failure,))
    assert restored == KnobReport(restored=(GOVERNOR,))
    assert files.files == ORIGINALS


def test_a_file_that_the_host_does_not_have_is_reported(state: StateDir) -> None:
    path = "/sys/devices/system/cpu/cpufreq/policy9/scaling_governor"
    report = knobs_of(kernel(), state).apply({path: "performance"})

    failure = KnobFailure(path, "performance", "no such file")
    assert report == KnobReport(failed=(failure,))
    assert state.read("host-changes") is None


def test_a_removed_file_is_abandoned(state: StateDir) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    knobs.apply({GOVERNOR: "performance"})
    del files.files[GOVERNOR]

    assert knobs.verify({GOVERNOR: "performance"}) == (
        KnobDrift(GOVERNOR, "performance", None),
    )
    assert knobs.apply({}) == KnobReport()
    assert state.read("host-changes") is None


def test_drift_is_seen_and_repaired_on_demand(state: StateDir) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    desired = {GOVERNOR: "performance", MIN: "950", IRQ: "0,1"}
    knobs.apply(desired)
    files.files |= {GOVERNOR: "schedutil", IRQ: "0-1"}
    drifts = knobs.verify(desired)
    unmoved = knobs.apply(desired)
    repaired = knobs.apply(desired, again=[drift.path for drift in drifts])

    assert drifts == (KnobDrift(GOVERNOR, "performance", "schedutil"),)
    assert (unmoved, repaired) == (KnobReport(), KnobReport(written=(GOVERNOR,)))
    assert files.files[GOVERNOR] == "performance"


def test_files_changed_by_other_programs_are_restored_and_reported(
    state: StateDir,
) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    knobs.apply({GOVERNOR: "performance", MIN: "950"})
    files.files[GOVERNOR] = "schedutil"
    report = knobs.restore_all()

    assert report == KnobReport(restored=(MIN, GOVERNOR), drifted=(GOVERNOR,))
    assert files.files == ORIGINALS


def test_a_journal_of_another_boot_is_dropped(state: StateDir) -> None:
    files = kernel()
    knobs_of(files, state, "first").apply({GOVERNOR: "performance"})
    booted = kernel()
    report = knobs_of(booted, state, "second").apply({IRQ: "1"})

    assert report == KnobReport(written=(IRQ,))
    assert booted.files == ORIGINALS | {IRQ: "1"}
    assert json.loads(state.read("host-changes") or "") == {
        "journal": "nri-resmgr host changes",
        "format": 1,
        "boot": "second",
        "originals": {IRQ: "0-3"},
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut"),
        pytest.param("[]", id="no mapping"),
        pytest.param('{"format": 2, "boot": "", "originals": {}}', id="newer"),
        pytest.param('{"format": 1, "boot": "", "originals": {"/sys/a": 1}}', id="1"),
        pytest.param(
            '{"format": 1, "boot": "", "originals": {"/etc/passwd": ""}}', id="no knob"
        ),
    ],
)
def test_an_invalid_journal_is_set_aside(state: StateDir, text: str) -> None:
    state.write("host-changes", text)
    journal = KnobJournal(state, "")
    knobs = Knobs(kernel(), journal)

    assert knobs.originals == {}
    assert journal.set_aside == f"{state.path}/host-changes.bad-1"
    assert Path(journal.set_aside).read_text() == text


def test_a_journal_that_is_a_link_is_set_aside(state: StateDir, tmp_path: Path) -> None:
    Path(f"{state.path}/host-changes").symlink_to(tmp_path / "elsewhere")
    journal = KnobJournal(state, "")

    assert journal.read() == {}
    assert Path(journal.set_aside).is_symlink()


def test_without_a_journal_nothing_is_written(state: StateDir, tmp_path: Path) -> None:
    files = kernel()
    knobs = knobs_of(files, state)
    state.close()
    report = knobs.apply({GOVERNOR: "performance"})

    assert files.files == ORIGINALS
    assert [(one.path, one.value) for one in report.failed] == [
        (GOVERNOR, "performance")
    ]
    assert report.failed[0].why.startswith(f"no journal: {tmp_path}/state/host-changes")


@pytest.mark.parametrize(
    ("path", "one", "other", "expected"),
    [
        pytest.param(IRQ, "0-3", "0,1,2,3", True, id="lists are sets"),
        pytest.param(DEFAULT, "f", "00000000,0000000f", True, id="masks are sets"),
        pytest.param(DEFAULT, "f", "1f", False, id="other masks"),
        pytest.param(GOVERNOR, "powersave", "powersave ", True, id="blanks"),
        pytest.param(GOVERNOR, "1", "01", False, id="text is text"),
        pytest.param(IRQ, "0-3", "x", False, id="no list"),
    ],
)
def test_texts_are_compared_by_meaning(
    path: str, one: str, other: str, *, expected: bool
) -> None:
    assert is_same(path, one, other) is expected


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/sys/../etc/passwd", "sys/a", "/sys//a", "/proc", "/system/a"],
)
def test_only_files_of_the_kernel_are_knobs(path: str) -> None:
    assert not is_knob(path)
    assert is_knob(GOVERNOR)
