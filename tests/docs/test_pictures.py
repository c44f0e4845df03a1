"""The pictures of the pages are those that are drawn now, and pages show them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.generators import PAGES
from tests.docs.pictures import PICTURES
from tests.page.screenshots import NAMES
from tests.page.screenshots import PICTURES as SCREENSHOTS
from tests.pictures.seen import seen
from tests.structure.source import ROOT


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_as_drawn(path: Path) -> None:
    drawn, kept = PICTURES[path](), path.read_text(encoding="utf-8")

    assert seen(kept) == seen(drawn), f"run `make docs`: {path.name} is out of date"
    assert kept == drawn


def test_each_picture_is_on_a_page_and_each_page_has_its_pictures() -> None:
    shown = {
        PAGES / name
        for page in PAGES.glob("*.md")
        for name in re.findall(
            r"!\[[^\]]+\]\(([^):]+\.(?:svg|png))\)", page.read_text(encoding="utf-8")
        )
    }

    kept = {*PICTURES, *(SCREENSHOTS / name for name in NAMES)}
    assert shown == kept == set(PAGES.glob("pictures/*"))


def test_the_readme_shows_each_screenshot() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)

    assert {ROOT / name for name in shown} == {SCREENSHOTS / name for name in NAMES}
