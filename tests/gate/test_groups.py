"""Tests of a group share a worker, and with it a containerd or an API server.

pytest 9.2 takes names of tests from elsewhere, so that xdist 3.8 forms no groups: no
test failed, but each worker started daemons of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gate.pytest_runs import run_pytest

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("one")
def test_together(number): pass

@pytest.mark.parametrize("number", range(6))
def test_anywhere(number): pass
"""


@pytest.mark.process
def test_tests_of_a_group_share_a_worker(tmp_path: Path) -> None:
    options = ("-v", "-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder")

    status, lines = run_pytest(tmp_path, "tests.gate.alone", TESTS, *options)

    together = [line for line in lines if "PASSED" in line and "test_together" in line]
    assert status == 0
    assert len(together) == 6
    assert len({re.findall(r"\[gw\d\]", line)[0] for line in together}) == 1
