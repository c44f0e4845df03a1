"""How busy CPUs are, by the kernel's ticks."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.host.cpu_time import BadCpuTimes, busy_between, read_ticks
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree

HEAD = "cpu  900 0 0 900 0 0 0 0 0 0\n"
TAIL = "intr 1 2 3\nctxt 7\nbtime 1700000000\n"


def tree_of(tmp_path: Path, lines: str) -> HostTree:
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/stat").write_text(HEAD + lines + TAIL)
    return HostTree(str(tmp_path))


def test_guest_time_counts_once_and_waiting_for_io_is_idle(tmp_path: Path) -> None:
    # user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice
    tree = tree_of(
        tmp_path, "cpu0 10 20 30 400 500 6 7 8 9 10\ncpu12 1 0 0 9 0 0 0 0 0 0\n"
    )

    assert read_ticks(tree) == {0: (81, 981), 12: (1, 10)}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("", "no CPU is listed"),
        ("cpu0 1 2 3 4\n", "cpu0: expected ticks, not '1 2 3 4'"),
        ("cpu3 1 2 3 x 5 6 7 8\n", "cpu3: expected ticks, not '1 2 3 x 5 6 7 8'"),
    ],
)
def test_another_form_is_an_error(tmp_path: Path, lines: str, why: str) -> None:
    with pytest.raises(BadCpuTimes) as error:
        read_ticks(tree_of(tmp_path, lines))

    assert error.value.why == why


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadCpuTimes):
        read_ticks(HostTree(str(tmp_path)))


def test_cpus_that_came_or_went_have_no_share() -> None:
    before = {0: (0, 100), 1: (10, 100), 2: (5, 50)}
    after = {0: (50, 200), 1: (10, 200), 3: (1, 2)}

    assert busy_between(before, after) == {0: 500, 1: 0}


TICKS = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))


@given(TICKS, TICKS)
def test_a_share_is_between_nothing_and_all(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    # Idle ticks can decrease, so that any pair can be read.
    rows = [{0: (busy, busy + idle)} for busy, idle in (before, after)]
    found = busy_between(*rows)[0]
    worked, idled = after[0] - before[0], after[1] - before[1]

    assert 0 <= found <= 1000
    if worked >= 0 and idled >= 0 and worked + idled:
        assert abs(found - 1000 * worked / (worked + idled)) < 1


def test_this_kernel_has_it() -> None:
    tree = HostTree("/")

    assert read_ticks(tree).keys() == set(read_machine(tree).online)
