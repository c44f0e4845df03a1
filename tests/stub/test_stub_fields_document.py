"""The document of the fields says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import Level
from nri_resmgr.stub.fields import FIELDS, OLDEST, Field

DOCUMENT = Path(__file__).parents[2] / "docs" / "stub-fields.md"


def rows() -> dict[str, list[str]]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0]: row[1:] for row in cells[1:]}


def short(level: Level) -> str:
    return str(level).removesuffix(".0")


def expected(field: Field) -> list[str]:
    level = short(field.level)
    if field.removal_level != OLDEST:
        level += f", removal {short(field.removal_level)}"
    return [field.setter, field.remover, level]


def test_each_field_has_its_row_in_order() -> None:
    assert list(rows()) == [field.path for field in FIELDS]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_a_row_says_how_to_set_and_remove_and_since_when(field: Field) -> None:
    assert rows()[field.path][:3] == expected(field)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_a_row_says_what_runtimes_do(field: Field) -> None:
    *_, creation, update = rows()[field.path]

    assert creation
    assert bool(update) == field.path.startswith("linux.resources.")
