"""The guest's lines report each test's fate, whole or cut short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.qemu.report import Outcome, Report, Result, read_report

MODULE = """
import pytest

@pytest.fixture
def broken(): raise LookupError("no such node")

@pytest.fixture
def untidy():
    yield
    raise OSError("not gone")

def test_good(): pass
def test_bad(): assert "node 1" == "node 2"
def test_skipped(): pytest.skip("no such hardware")
@pytest.mark.xfail(reason="known", strict=True)
def test_known(): raise ValueError
def test_without_fixture(broken): pass
def test_bad_twice(untidy): raise ValueError("first")
def test_good_but_untidy(untidy): pass
@pytest.mark.parametrize("cpus", ["0-3,<&>"])
def test_case(cpus): pass
"""


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the real pytest reports of MODULE with the guest's plugin."""
    folder = tmp_path_factory.mktemp("reported")
    (folder / "test_module.py").write_text(MODULE)
    (folder / "test_unreadable.py").write_text("import no_such_module\n")
    plugins = ("-p", "tests.qemu.guest_progress", "-p", "no:asyncio")
    options = ("-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=.")
    argv = (sys.executable, "-m", "pytest", "-q", *plugins, *options)
    own = {
        "NRI_RESMGR_TEST_PROGRESS": str(folder / "lines"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    subprocess.run(
        (*argv, "--continue-on-collection-errors", "."),
        cwd=folder,
        check=False,
        capture_output=True,
        env=os.environ | own,
    )
    return (folder / "lines").read_text()


@pytest.fixture(scope="module")
def results(report_text: str) -> dict[str, Result]:
    return {result.name: result for result in read_report(report_text).results}


def test_each_test_is_reported_once_with_its_outcome(
    results: dict[str, Result],
) -> None:
    outcomes = {name: result.outcome for name, result in results.items()}

    assert outcomes == {
        "test_unreadable.py": Outcome.FAILED,
        "test_module.py::test_good": Outcome.PASSED,
        "test_module.py::test_bad": Outcome.FAILED,
        "test_module.py::test_skipped": Outcome.SKIPPED,
        "test_module.py::test_known": Outcome.SKIPPED,
        "test_module.py::test_without_fixture": Outcome.FAILED,
        "test_module.py::test_bad_twice": Outcome.FAILED,
        "test_module.py::test_good_but_untidy": Outcome.FAILED,
        "test_module.py::test_case[0-3,<&>]": Outcome.PASSED,
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("test_unreadable.py", "no_such_module", id="a failing import"),
        pytest.param("test_module.py::test_bad", "node 1", id="a failed assertion"),
        pytest.param(
            "test_module.py::test_without_fixture",
            "no such node",
            id="a broken fixture",
        ),
        pytest.param("test_module.py::test_bad_twice", "first", id="the first failure"),
        pytest.param(
            "test_module.py::test_good_but_untidy", "not gone", id="a failing cleanup"
        ),
    ],
)
def test_failure_reports(results: dict[str, Result], name: str, words: str) -> None:
    assert words in results[name].text


def test_skip_reports_its_reason_and_nothing_else(results: dict[str, Result]) -> None:
    assert results["test_module.py::test_skipped"].text == "no such hardware"


def test_whole_report_is_complete(report_text: str) -> None:
    assert read_report(report_text).complete


@pytest.mark.parametrize("phases", [0, 1, 2])
def test_guest_that_ends_early_leaves_what_it_reported(
    report_text: str, phases: int
) -> None:
    name = "test_module.py::test_good"
    lines = report_text.splitlines(keepends=True)
    began = next(n for n, line in enumerate(lines) if name in line)
    whole = read_report("".join(lines[:began])).results

    text = "".join(lines[: began + 1 + phases]) + '{"event": "pha'
    [*before, last] = read_report(text).results

    assert tuple(before) == whole
    assert (last.name, last.outcome) == (name, Outcome.FAILED)
    assert last.text == "the guest ended meanwhile"


def test_nothing_reported_is_an_incomplete_report() -> None:
    assert read_report("") == Report((), complete=False)
