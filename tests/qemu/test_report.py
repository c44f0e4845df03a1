from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.qemu.report import Outcome, Result, read_report

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
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("reported")
    (folder / "test_module.py").write_text(MODULE)
    (folder / "test_unreadable.py").write_text("import no_such_module\n")
    return {result.name: result for result in read_report(junit(folder))}


def junit(folder: Path) -> str:
    """Let the real pytest write a report, as it does in the guest."""
    options = ("-p", "no:cacheprovider", "-c", "/dev/null", "--junitxml=report.xml")
    plain = ("-p", "no:asyncio", "--continue-on-collection-errors")
    argv = (sys.executable, "-m", "pytest", "-q", *options, *plain, ".")
    subprocess.run(argv, cwd=folder, check=False, capture_output=True)
    return (folder / "report.xml").read_text()


def test_each_test_is_told_once_with_its_outcome(results: dict[str, Result]) -> None:
    outcomes = {name: result.outcome for name, result in results.items()}

    assert outcomes == {
        "test_unreadable": Outcome.FAILED,
        "test_module::test_good": Outcome.PASSED,
        "test_module::test_bad": Outcome.FAILED,
        "test_module::test_skipped": Outcome.SKIPPED,
        "test_module::test_known": Outcome.SKIPPED,
        "test_module::test_without_fixture": Outcome.FAILED,
        "test_module::test_bad_twice": Outcome.FAILED,
        "test_module::test_good_but_untidy": Outcome.FAILED,
        "test_module::test_case[0-3,<&>]": Outcome.PASSED,
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("test_unreadable", "no_such_module", id="a failing import"),
        pytest.param("test_module::test_bad", "node 1", id="a failed assertion"),
        pytest.param(
            "test_module::test_without_fixture", "no such node", id="a broken fixture"
        ),
        pytest.param("test_module::test_bad_twice", "first", id="the first failure"),
        pytest.param(
            "test_module::test_good_but_untidy", "not gone", id="a failing cleanup"
        ),
    ],
)
def test_failure_tells(results: dict[str, Result], name: str, words: str) -> None:
    assert words in results[name].text


def test_skip_tells_its_reason_and_nothing_else(results: dict[str, Result]) -> None:
    assert results["test_module::test_skipped"].text == "no such hardware"
