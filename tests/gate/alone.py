"""Plugin of pytest: a failed test runs once more, alone, after all others.

What passes then is named on the last lines, and does not fail the run: the machine may
have failed it, by its load or a busy disk. Such a test is mended all the same. What
fails again is shown as it failed alone, too. More failed tests than `MOST` fail the run
at once.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from typing import Final

import pytest

MOST: Final = 3
ALONE: Final = "passed only alone"  # a word of pytest's last line

_FAILED: Final = ("failed", "error")
_PASSED: Final = pytest.StashKey[dict[str, list[pytest.TestReport]]]()
_AGAIN: Final = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with empty tables."""
    config.stash[_PASSED], config.stash[_AGAIN] = {}, {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Run again what failed, when the workers have ended.

    Hooks that were registered later are called before: that of xdist's controller,
    which ends the workers. That of pytest's temporary folders is called after: from
    then on other runs may remove this one's.
    """
    # Other statuses are not about tests that failed.
    is_worker = hasattr(session.config, "workerinput")
    if is_worker or session.exitstatus is not pytest.ExitCode.TESTS_FAILED:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    failed = _failed_tests(reporter.stats)
    if len(failed) > MOST:
        return
    again = {name: _failure_alone(session, name) for name in failed}
    passed = {name: failed[name] for name in failed if not again[name]}
    session.config.stash[_PASSED] = passed
    session.config.stash[_AGAIN] = again
    for name in _FAILED:
        kept = [one for one in reporter.stats.get(name, ()) if _name(one) not in passed]
        reporter.stats[name] = kept
    if passed:
        reporter.stats[ALONE] = [reports[0] for reports in passed.values()]
    if len(passed) == len(failed):
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None]:
    """Say on the last lines what failed, and how, and passed alone."""
    yield
    for name, output in config.stash[_AGAIN].items():
        if output:
            terminalreporter.section(f"failed alone, too: {name}")
            terminalreporter.write_line(output)
    for name, reports in config.stash[_PASSED].items():
        terminalreporter.section("failed beside other tests, and passed alone")
        for report in reports:
            terminalreporter.write_line(report.longreprtext)
        terminalreporter.write_line(f"FAILED, THEN PASSED ALONE {name}", yellow=True)


def _failed_tests(
    stats: Mapping[str, list[pytest.TestReport]],
) -> dict[str, list[pytest.TestReport]]:
    """Return the reports of each test that failed, of its fixtures and subtests too."""
    failed: dict[str, list[pytest.TestReport]] = {}
    for outcome in _FAILED:
        for report in stats.get(outcome, ()):
            failed.setdefault(_name(report), []).append(report)
    return failed


def _name(report: pytest.TestReport) -> str:
    """Return what pytest calls the test; xdist adds its group."""
    return re.sub(r"@[\w.-]+$", "", report.nodeid)


def _failure_alone(session: pytest.Session, name: str) -> str:
    """Return the output of a test that fails alone, too, or an empty text."""
    # Paths of sockets have 108 bytes: the folder is no deeper than that of a worker.
    # Pytest's default would be two folders below the folder of this run.
    folder = tempfile.mkdtemp(prefix="")
    # Not without xdist, whose marks some tests have.
    program = (sys.executable, "-m", "pytest", "-n", "0", "--quiet")
    done = subprocess.run(
        (*program, "--basetemp", folder, name),
        cwd=session.config.rootpath,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout.strip() if done.returncode else ""
