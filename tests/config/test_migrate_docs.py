"""docs/migrate.md shows what ``nri-resmgr convert`` writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.config.migrate import convert_text
from nri_resmgr.policies import read_config

PAGE: Final = Path(__file__).parents[2] / "docs" / "migrate.md"
PAIRS: Final = re.findall(
    r"```yaml\n(.*?)```\n\nbecomes:\n\n```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL
)


def test_the_page_has_an_example_of_each_origin() -> None:
    assert len(PAIRS) == 2


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_examples_are_the_output_of_convert(before: str, after: str) -> None:
    assert convert_text(before, read_config) == after
