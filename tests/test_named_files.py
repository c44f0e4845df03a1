"""What source and docs refer to is there: pages with their sections, modules, tests."""

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
# A module in the docs, from the root, from `nri_resmgr` or from the page.
_MODULE: Final = re.compile(r"(?<![\w./-])\w+(?:/\w+)+\.py\b")
_CODE: Final = re.compile(r"`([^`\n]+)`")
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


def modules_in(text: str, page: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the modules that a text names, with their files where they exist."""
    for code in _CODE.findall(text):
        for named in _MODULE.findall(code):
            paths = (one / named for one in (ROOT, ROOT / "nri_resmgr", page.parent))
            yield named, next(filter(Path.is_file, paths), None)


def test_modules_that_the_docs_name_exist() -> None:
    # The changelog is about earlier releases, too.
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    found = [
        (page.name, *one)
        for page in pages
        for one in modules_in(page.read_text(encoding="utf-8"), page)
    ]

    assert found
    assert [(page, named) for page, named, path in found if path is None] == []


def is_defined(name: str, source: str) -> bool:
    """Return whether a module defines or sets each part of a dotted name."""
    return all(
        re.search(rf"(?m)\b(?:class|def) {one}\b|^{one}\b|\bself\.{one}\b", source)
        for one in name.split(".")
    )


def test_answers_to_newcomers_questions_name_what_their_files_define() -> None:
    page = ROOT / "docs" / "architecture.md"
    _, _, text = page.read_text(encoding="utf-8").partition("\n## Where to look\n")
    table, _, _ = text.partition("\n## ")
    found, missing = 0, []
    for answer in re.findall(r"(?m)^\| [^|]*\? \| ([^|]*) \| \d \|$", table):
        files = [path for _, path in modules_in(answer, page) if path]
        sources = [path.read_text(encoding="utf-8") for path in files]
        for name in _CODE.findall(answer):
            if _MODULE.fullmatch(name) is None:
                found += 1
                if not any(is_defined(name, source) for source in sources):
                    missing.append((name, answer))

    assert found > 20
    assert missing == []
