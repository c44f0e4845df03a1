"""Plugin of pytest: what fails only with a version that is new here fails no run.

Debian's suites change without us: another containerd, another kernel in the
emulated machine. A test that fails with a version that `TESTED` does not have counts as
an expected failure, and the last lines of the run name the version. Add a version when
all tests have passed with it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Final

import pytest

from tests.qemu.image import guest_versions
from tests.real_host.binaries import OVERRIDE, binaries
from tests.real_host.debian import PackageUnavailable

TESTED: Final = {
    "containerd": {"1.7.24", "2.1.9"},
    # The emulated machine's, besides.
    "linux": {"6.12.117"},
    "python3.13": {"3.13.5"},
    "runc": {"1.1.15"},
    "systemd": {"257.13"},
}
_NEW: Final = "no run has passed with "


def new_among(versions: dict[str, str]) -> list[str]:
    """Return the versions that no run has passed with: ``containerd 2.2.0-1``.

    Args:
        versions: By program, a key of `TESTED`. What follows the release's number is
            Debian's, and does not count.
    """
    return [
        f"{program} {version}"
        for program, version in versions.items()
        if _release(version) not in TESTED[program]
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a failure with a new version into an expected one."""
    report = yield
    if report.failed and (new := new_among(_versions_of(item))):
        report.outcome = "skipped"
        crash = getattr(report.longrepr, "reprcrash", None)
        why = (crash.message if crash else report.longreprtext).partition("\n")[0]
        report.wasxfail = f"{_NEW}{', '.join(new)}: {why}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each new version, and how many tests failed with it."""
    for version, count in Counter(_met(terminalreporter)).items():
        line = f"warning: {_NEW}{version}: {count} failed (XFAIL below)"
        terminalreporter.write_line(line, yellow=True)


def _met(reporter: pytest.TerminalReporter) -> Iterator[str]:
    for report in reporter.stats.get("xfailed", ()):
        if report.wasxfail.startswith(_NEW):
            yield report.wasxfail.removeprefix(_NEW).split(":")[0]


def _versions_of(item: pytest.Item) -> dict[str, str]:
    """Return versions that a test depends on and that change with Debian's suites."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    try:
        if item.get_closest_marker("qemu"):
            return guest_versions()
        # One that the variable names does not change with a suite.
        if "programs" in params and OVERRIDE not in os.environ:
            return {"containerd": binaries(str(params["programs"])).version}
    except PackageUnavailable:
        pass  # which is why it failed
    return {}


def _release(version: str) -> str:
    found = re.match(r"[\d.]*\d", version)
    return found[0] if found else version
