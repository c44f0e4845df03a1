"""Every document of configuration that the documentation shows is accepted."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.policies import parse_config

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = [
    pytest.param(textwrap.dedent(block), id=f"{page.name}-{number}")
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    for number, block in enumerate(
        re.findall(
            r"(?ms)^ *```yaml\n( *apiVersion: config\.nri.*?)^ *```", page.read_text()
        )
    )
]


def test_documents_are_found() -> None:
    assert len(DOCUMENTS) > 5


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_of_the_documentation_is_accepted(text: str) -> None:
    assert parse_config(text).ineffective == ()
