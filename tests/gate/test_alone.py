"""The second run of a failed test, in runs of pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.alone import ALONE, MOST
from tests.gate.pytest_runs import run_pytest

pytestmark = pytest.mark.process

# A test fails where its folder does not have its mark, which it leaves.
FLAKY = """
import pathlib, pytest

def once(name):
    mark = pathlib.Path(__file__).with_name(name)
    if not mark.exists():
        mark.touch()
        raise RuntimeError("the machine was busy")

@pytest.fixture
def flaky_fixture():
    once("fixture")

@pytest.fixture
def flaky_end():
    yield
    once("end")

def test_good(): pass
"""
CALL = "@pytest.mark.xdist_group('one')\ndef test_call(): once('call')\n"
NAME = "@pytest.mark.parametrize('x', ['a b@c::d'])\ndef test_name(x): once('name')\n"
FIXTURE = "def test_fixture(flaky_fixture): pass\n"
END = "def test_end(flaky_end): pass\n"
SUBTESTS = """
def test_sub(subtests):
    with subtests.test('x'): once('sub')
    with subtests.test('y'): once('other')
"""
PLUGIN = "tests.gate.alone"
BROKEN = """
def test_broken():
    mark = pathlib.Path(__file__).with_name("broken")
    times = "again" if mark.exists() else "first"
    mark.touch()
    raise RuntimeError(f"broken {times}")
"""


@pytest.mark.parametrize(
    "tests",
    [
        pytest.param((CALL, NAME, SUBTESTS), id="tests"),
        pytest.param((FIXTURE, END), id="their fixtures"),
    ],
)
def test_a_test_that_passes_alone_does_not_fail_the_run(
    tmp_path: Path, tests: tuple[str, ...]
) -> None:
    workers = ("-n", "2", "--dist", "loadgroup")

    status, lines = run_pytest(tmp_path, PLUGIN, FLAKY + "".join(tests), *workers)

    assert status == 0
    assert f"{len(tests)} {ALONE}" in lines[-1]
    assert "failed" not in lines[-1]
    assert "error" not in lines[-1]
    named = [line for line in lines if line.startswith("FAILED, THEN PASSED ALONE ")]
    assert len(named) == len(tests)
    assert any("the machine was busy" in line for line in lines)


def test_a_failed_test_runs_once_more_with_workers_too(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    count = f"pathlib.Path({str(runs)!r}).open('a').write('x')"
    tests = f"def test_count():\n    {count}\n    assert False\n"

    status, lines = run_pytest(tmp_path, PLUGIN, FLAKY + tests, "-n", "2")

    assert status == 1
    assert "1 failed" in lines[-1]
    assert runs.read_text() == "xx"


def test_the_folder_of_the_second_run_is_no_deeper_than_a_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    paths = tmp_path / "paths"
    # As for a run of our tests: what they make beside their own folders is inside.
    monkeypatch.setenv("TMPDIR", str(folder))
    note = f"pathlib.Path({str(paths)!r}).open('a').write(f'{{tmp_path}}\\n')"
    tests = f"def test_deep(tmp_path):\n    {note}\n    once('deep')\n"

    status, _ = run_pytest(
        tmp_path, PLUGIN, FLAKY + tests, "-n", "1", "--basetemp", str(folder)
    )

    worker, alone = paths.read_text().splitlines()
    assert status == 0
    assert len(alone) <= len(worker)


def test_the_folder_of_the_run_stays_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pytest keeps those of three runs, and all that have such a file.
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    locks = f"pathlib.Path({str(tmp_path)!r}).glob('pytest-of-*/pytest-0/.lock')"
    tests = f"def test_lock():\n    once('lock')\n    assert [*{locks}]\n"

    status, lines = run_pytest(tmp_path, PLUGIN, FLAKY + tests, "-n", "1")

    assert status == 0, lines
    assert f"1 {ALONE}" in lines[-1]


def test_a_test_that_fails_alone_too_fails_the_run(tmp_path: Path) -> None:
    status, lines = run_pytest(tmp_path, PLUGIN, FLAKY + CALL + BROKEN)

    assert status == 1
    assert f"1 failed, 1 passed, 1 {ALONE}" in lines[-1]
    assert lines[-2] == "FAILED, THEN PASSED ALONE test_it.py::test_call"
    for times in ("first", "again"):
        assert f"E       RuntimeError: broken {times}" in lines


@pytest.mark.parametrize(
    ("count", "status", "said"), [(MOST, 0, ALONE), (MOST + 1, 1, "failed")]
)
def test_more_than_a_few_fail_the_run(
    tmp_path: Path, count: int, status: int, said: str
) -> None:
    tests = "".join(f"def test_{n}(): once('{n}')\n" for n in range(count))

    found, lines = run_pytest(tmp_path, PLUGIN, FLAKY + tests)

    assert found == status
    assert f"{count} {said}" in lines[-1]


def test_a_run_that_could_not_collect_fails(tmp_path: Path) -> None:
    status, _ = run_pytest(tmp_path, PLUGIN, "import nothing_of_that_name\n")

    assert status == pytest.ExitCode.INTERRUPTED
