"""The page of the peers' scenarios names stories, tests and samples that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = (_ROOT / "docs/peers-scenarios.md").read_text(encoding="utf-8")
_STORIES: Final = re.findall(r"`((?!tests/)[a-z-]+/[a-z0-9-]+)`", _PAGE)
_TESTS: Final = re.findall(r"`(tests/\w+/\w+\.py)`", _PAGE)
_SAMPLES: Final = re.findall(r"`(\w+/[\w-]+\.yaml)`", _PAGE)


@pytest.mark.parametrize(
    "path",
    [
        *(f"tests/policy/cases/{one}.yaml" for one in _STORIES),
        *_TESTS,
        *(f"tests/config/{one}" for one in _SAMPLES),
    ],
)
def test_files_that_the_page_names_exist(path: str) -> None:
    assert (_ROOT / path).is_file()


def test_the_page_has_all_stories_of_the_peers_scenarios() -> None:
    stories = (_ROOT / "tests/policy/cases").glob("*/cri-rm-*.yaml")
    assert {f"{one.parent.name}/{one.stem}" for one in stories} <= set(_STORIES)
