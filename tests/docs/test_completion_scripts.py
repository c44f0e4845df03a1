"""The scripts of completion that the package installs are those of its commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.completion import SCRIPTS


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_as_written(path: Path) -> None:
    written = SCRIPTS[path]()

    assert path.read_text(encoding="utf-8") == written, (
        f"run `make docs`: {path.name} is out of date"
    )
