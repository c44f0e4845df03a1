"""The examples of the documentation do what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

from nri_resmgr.policy.mems import ZoneRule, allocate

PAGE = Path(__file__).parents[3] / "docs" / "memory-allocator.md"


def test_the_page_is_right() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted
    assert not result.failed


def test_the_page_reports_every_rule_in_order() -> None:
    rows = PAGE.read_text().split("| rule | meaning |\n|---|---|\n")[1].splitlines()
    documented = [row.split("`")[1] for row in rows[: rows.index("")]]

    assert documented == list(ZoneRule)


def test_docstrings_are_right() -> None:
    result = doctest.testmod(allocate)

    assert result.attempted
    assert not result.failed
