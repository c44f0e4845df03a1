"""The navigation of the site, as docs/README.md has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from deploy.site.links import linked, resolved

Entry: TypeAlias = str | dict[str, "list[Entry]"]
"""A page by its path in the repository, or a section by its title."""

INDEX: Final = "docs/README.md"
_ROW: Final = re.compile(r"\| \[([^\]]+)\]\(([^)#]+)\) \|")


def navigation(index: str, below: Callable[[str], Sequence[str]]) -> list[Entry]:
    """Return the pages in the order of the index, each once.

    What stands before the first heading of the index is the first section; each heading
    of it is one, with a part for each line that ends in a colon, such as "How-to:". A
    row for a folder, or for the README of one, is a section with all pages of it.

    Args:
        index: Text of the index.
        below: Returns the pages of a folder, the one that introduces it first.
    """
    intro, *parts = re.split(r"(?m)^## +", index)
    first: list[Entry] = ["README.md", INDEX]
    seen = {"README.md", INDEX}
    for page in linked(INDEX, intro):
        if page not in seen:
            seen.add(page)
            first.append(page)
    entries: list[Entry] = [{"nri-resmgr": first}]
    for part in parts:
        title, _, body = part.partition("\n")
        entries.append({title.strip(): _section(body, below, seen)})
    return entries


def _section(
    body: str, below: Callable[[str], Sequence[str]], seen: set[str]
) -> list[Entry]:
    section: list[Entry] = []
    rows = section
    for line in body.splitlines():
        if re.fullmatch(r"[A-Z][\w-]+:", line):
            rows = []
            section.append({line.rstrip(":"): rows})
        elif found := _ROW.match(line):
            rows.extend(_row(found[1], resolved(INDEX, found[2]), below, seen))
    return section


def _row(
    title: str, path: str, below: Callable[[str], Sequence[str]], seen: set[str]
) -> list[Entry]:
    pages = [page for page in below(path) if page not in seen]
    seen.update(pages)
    return [{title: [*pages]}] if len(pages) > 1 else [*pages]
