"""The files of the repository that the site has, by their paths there.

A page of Markdown is a page of the site. So is what a page links otherwise, such as a
test or a sample: a page with its text. A folder is one with the list of its files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from deploy.site.links import linked, resolved
from deploy.site.navigation import INDEX

ROOT: Final = Path(__file__).parents[2]
_FIRST: Final = ("README.md", INDEX)
# What the pages show or refer to as a file stays one.
_AS_THEY_ARE: Final = "docs/"
# Search is for the documentation.
_NOT_SEARCHED: Final = "---\nsearch: {exclude: true}\n---\n\n"


class LinkedFiles:
    """All files of the site: what can be reached by links from the two first pages.

    Attributes:
        pages: Pages of Markdown.
        media: Files of ``docs`` that are served as they are.
        shown: Files and folders that get a page with their text or list.
    """

    def __init__(self, root: Path = ROOT) -> None:
        """Follow all links.

        Args:
            root: Top folder of the repository.
        """
        self._root = root
        self.pages: set[str] = set()
        self.media: set[str] = set()
        self.shown: set[str] = set()
        waiting = [*_FIRST]
        while waiting:
            path = waiting.pop()
            if path not in self.pages | self.media | self.shown:
                waiting += self._add(path)

    def source_of(self, page: str, target: str) -> str:
        """Return the link to a page of the site that a link of the repository means.

        Args:
            page: Path of the page that has the link.
            target: The link, without an anchor.
        """
        path = resolved(page, target)
        if path not in self.shown:
            return target
        return posixpath.relpath(self.page_of(path), posixpath.dirname(page) or ".")

    def page_of(self, path: str) -> str:
        """Return the Markdown page that shows a file or a folder."""
        if not (self._root / path).is_dir():
            return f"{path}.md"
        if f"{path}/README.md" in self.pages:
            return f"{path}/README.md"
        return f"{path}/index.md"

    def below(self, path: str) -> Sequence[str]:
        """Return the pages of a folder, the one that introduces it first.

        Args:
            path: The folder, or its README.md; of another page, it is the only one.
        """
        folder = posixpath.dirname(path) if path.endswith("/README.md") else path
        if not (self._root / folder).is_dir():
            return [path]
        first = self.page_of(folder)
        pages = sorted(one for one in self.pages if one.startswith(f"{folder}/"))
        return [first, *(one for one in pages if one != first)]

    def text_of(self, path: str) -> str:
        """Return the Markdown that shows a file or a folder."""
        place = self._root / path
        if place.is_dir():
            return f"{_NOT_SEARCHED}# {path}/\n\n{''.join(self._listed(path))}"
        text = place.read_text(encoding="utf-8")
        ticks = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, ticks + 1)
        # The highlighter knows languages by the ends of their files' names, too.
        language = "yaml" if place.suffix == ".conf" else place.suffix[1:]
        return (
            f"{_NOT_SEARCHED}# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"
        )

    def _add(self, path: str) -> Iterator[str]:
        """Sort a path in; yield what it leads to."""
        place = self._root / path
        if place.is_dir():
            self.shown.add(path)
            if path.startswith(_AS_THEY_ARE):
                yield from (f"{path}/{one.name}" for one in place.iterdir())
            else:
                yield from self._pages_below(path)
        elif not place.is_file():
            pass  # MkDocs reports the link
        elif place.suffix == ".md":
            self.pages.add(path)
            yield from linked(path, place.read_text(encoding="utf-8"))
            # The index has one row for all pages of such a folder.
            if place.name == "README.md" and path not in _FIRST:
                yield from self._pages_below(posixpath.dirname(path))
        elif path.startswith(_AS_THEY_ARE):
            self.media.add(path)
        else:
            self.shown.add(path)

    def _pages_below(self, folder: str) -> Iterator[str]:
        for place in (self._root / folder).glob("**/README.md"):
            yield place.relative_to(self._root).as_posix()

    def _listed(self, folder: str) -> Iterator[str]:
        known = self.pages | self.media | self.shown
        for place in sorted((self._root / folder).iterdir()):
            name = f"{place.name}{'/' * place.is_dir()}"
            path = f"{folder}/{place.name}"
            if place.name.startswith(("__", ".")):
                continue
            if f"{path}/README.md" in self.pages:
                yield f"- [{name}]({place.name}/README.md)\n"
            elif path in known:
                target = self.source_of(f"{folder}/index.md", place.name)
                yield f"- [{name}]({target})\n"
            else:
                yield f"- {name}\n"
