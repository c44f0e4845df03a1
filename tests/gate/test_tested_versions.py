"""Failures with versions that no run has passed with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.gate.pytest_runs import run_pytest
from tests.gate.tested_versions import TESTED, new_among
from tests.real_host.absent import give_up
from tests.real_host.binaries import OVERRIDE, Binaries, binaries, offered_versions
from tests.real_host.debian import PackageUnavailable

PLUGIN = "tests.gate.tested_versions"
TESTS = """
import pytest
from tests.gate.tested_versions import TESTED

@pytest.fixture(params=[{name!r}])
def programs(request): pass

TESTED["containerd"] = {tested!r}
def test_with_it(programs): raise RuntimeError("all is new")
"""
OTHER = "def test_without(): raise RuntimeError('all is as ever')\n"


@pytest.fixture
def offered() -> tuple[str, Binaries]:
    if OVERRIDE in os.environ:
        pytest.skip(f"no suite changes the containerd that {OVERRIDE} names")
    name = offered_versions()[0]
    try:
        return name, binaries(name)
    except PackageUnavailable as reason:
        give_up(f"containerd: {reason}")


@pytest.mark.containerd
def test_a_failure_with_a_new_version_is_a_warning(
    offered: tuple[str, Binaries], tmp_path: Path
) -> None:
    name, found = offered

    status, lines = run_pytest(tmp_path, PLUGIN, TESTS.format(name=name, tested=()))

    assert status == 0
    assert "1 xfailed" in lines[-1]
    new = f"no run has passed with containerd {found.version}"
    assert f"warning: {new}: 1 failed (XFAIL below)" in lines
    assert any(line.startswith("XFAIL test_it.py::test_with_it") for line in lines)
    assert any("RuntimeError: all is new" in line for line in lines)


@pytest.mark.containerd
def test_all_other_failures_fail_the_run(
    offered: tuple[str, Binaries], tmp_path: Path
) -> None:
    name, found = offered
    number = found.version.split("~")[0].split("+")[0]
    tested = TESTS.format(name=name, tested=(number,))

    status, lines = run_pytest(tmp_path, PLUGIN, tested + OTHER)

    assert status == 1
    assert "2 failed" in lines[-1]


@pytest.mark.parametrize(
    ("version", "new"),
    [
        ("1.7.24~ds1-6+deb13u1", []),
        ("1.7.240", ["containerd 1.7.240"]),
        ("1.7", ["containerd 1.7"]),
        ("odd", ["containerd odd"]),
    ],
)
def test_suffixes_of_debian_are_ignored(version: str, new: list[str]) -> None:
    assert "1.7.24" in TESTED["containerd"]
    assert new_among({"containerd": version}) == new
