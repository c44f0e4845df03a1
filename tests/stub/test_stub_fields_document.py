"""The document of the fields says for each what runtimes do with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.stub.fields import FIELDS, Field
from tests.docs.markdown import read_rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "stub-fields.md"


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_each_row_describes_what_runtimes_do(field: Field) -> None:
    rows = read_rows(DOCUMENT.read_text(encoding="utf-8"))

    *_, creation, update = rows[field.path]

    assert creation
    assert bool(update) == field.path.startswith("linux.resources.")
