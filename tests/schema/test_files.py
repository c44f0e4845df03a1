"""The committed files are those that the readers make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schema.files import CRDS, EDITORS, ROOT, generated


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_a_file_is_as_generated(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert text == generated()[path], f"run `make crds`: {path.name} is out of date"


def test_there_is_no_other_file() -> None:
    assert {*CRDS.iterdir(), *EDITORS.parent.iterdir()} == set(generated())


def test_nothing_but_the_command_imports_schemas() -> None:
    importing = {
        path.relative_to(ROOT / "nri_resmgr").parts[:2]
        for path in (ROOT / "nri_resmgr").rglob("*.py")
        if "nri_resmgr.schema" in path.read_text(encoding="utf-8")
    }

    assert {parts for parts in importing if parts[0] != "schema"} == {
        ("cli", "schema.py"),
        ("config", "table.py"),
    }  # one in a docstring
