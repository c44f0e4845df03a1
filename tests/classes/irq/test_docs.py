"""The examples of docs/interrupts.md and docs/host-changes.md are true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["interrupts", "host-changes"])
def test_the_page(page: str) -> None:
    failed, tried = doctest.testfile(f"{DOCS}/{page}.md", module_relative=False)

    assert (failed, tried > 5) == (0, True)
