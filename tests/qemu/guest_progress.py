"""A pytest plugin for the guest: each result leaves it as soon as it is known.

``NRI_RESMGR_TEST_PROGRESS`` names the file, the second serial port in a guest. Every
line is a JSON object; `tests.qemu.report` reads them. What was reported survives the
guest's end, however it ends.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logstart(nodeid: str) -> None:
    """Report what is running, for the day it does not end."""
    _report(event="started", name=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report one phase: setup, body or cleanup."""
    _report_outcome(report, report.duration)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Report a module that could not be imported, or that skips itself."""
    if not report.passed:
        _report_outcome(report, 0.0)


def pytest_sessionfinish(exitstatus: int) -> None:
    """Report that nothing more will come."""
    _report(event="ended", status=int(exitstatus))


def _report_outcome(
    report: pytest.TestReport | pytest.CollectReport, seconds: float
) -> None:
    _report(
        event="phase",
        name=report.nodeid,
        phase=report.when,
        outcome=report.outcome,
        text=_text(report),
        seconds=seconds,
    )


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext


def _report(**line: object) -> None:
    # Opened anew each time: nothing stays in a buffer that dies with the machine.
    with _file().open("a", encoding="ascii") as file:
        file.write(f"{json.dumps(line)}\n")


def _file() -> Path:
    return Path(os.environ["NRI_RESMGR_TEST_PROGRESS"])
