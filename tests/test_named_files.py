"""What source and docs refer to is there: pages with their sections, laws, tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

# A name in the docs can end in an ellipsis; the name of a module is no function's.
_TEST: Final = re.compile(r"`(test_\w+)(…?)`")
_FUNCTION: Final = re.compile(r"(?m)^ *(?:async )?def (test_\w+)\(")

_PATH: Final = re.compile(r"\b(?:docs|tests)/[\w./-]+\.(?:md|py)\b")
# Titles of sections in quotes, after the page that has them.
_SECTIONS: Final = re.compile(r"(docs/[\w-]+\.md),((?:(?: and)? \"[^\"]+\")+)")
# Where something comes from: pages of other projects.
_SOURCE: Final = re.compile(r"Source:.*?(?:\"\"\"|\n\n)", re.DOTALL)


def references(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that a module names, and the section of it where it names one."""
    text = _SOURCE.sub("", path.read_text(encoding="utf-8"))
    words = " ".join(text.split())
    yield from ((named, "") for named in _PATH.findall(words))
    for named, titles in _SECTIONS.findall(words):
        yield from ((named, title) for title in re.findall('"(.+?)"', titles))


def is_there(named: str, section: str) -> bool:
    path = ROOT / named
    if not section or not path.is_file():
        return path.is_file()
    headings = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return section in headings


def test_files_and_sections_that_the_source_names_exist() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), *reference)
        for path in ROOT.glob("nri_resmgr/**/*.py")
        for reference in references(path)
    }

    missing = [one for one in sorted(found) if not is_there(*one[1:])]
    assert found
    assert missing == []


def test_tests_that_the_docs_name_exist() -> None:
    names = {
        name
        for path in ROOT.glob("tests/**/test_*.py")
        for name in (path.stem, *_FUNCTION.findall(path.read_text(encoding="utf-8")))
    }
    named = {
        (path.name, *reference)
        for path in ROOT.glob("docs/**/*.md")
        for reference in _TEST.findall(path.read_text(encoding="utf-8"))
    }

    missing = [
        (page, start)
        for page, start, dots in sorted(named)
        if not (start in names or (dots and any(n.startswith(start) for n in names)))
    ]
    assert named
    assert missing == []
