"""What the page on resctrl shows is so."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/resctrl.md"


def test_examples_are_true() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted > 10
    assert result.failed == 0
