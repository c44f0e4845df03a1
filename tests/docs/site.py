"""The built site, as a browser reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

ROOT: Final = Path(__file__).parents[2]

# Attributes that make a browser fetch something; a link of the kinds below fetches
# nothing by itself.
_FETCHED: Final = ("src", "srcset", "data", "poster")
_NOT_FETCHED: Final = ("canonical", "prev", "next")


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a repository, as ``make site`` does.

    Args:
        root: Top folder of the repository.
        folder: Where the site is made.
    """
    flags = ("--strict", "--config-file", "deploy/site/mkdocs.yml")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *flags, "--site-dir", str(folder)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def built_path(page: str) -> str:
    """Return the path in the site of a Markdown page of the repository."""
    path = Path(page)
    folder = path.parent if path.stem in ("README", "index") else path.with_suffix("")
    return (folder / "index.html").as_posix()


class BuiltPage(HTMLParser):
    """One page of a site.

    Attributes:
        path: Path in the site.
        fetched: What a browser fetches to show it.
        links: Where its links lead, as they are written.
        navigation: Those in the navigation of the site.
        tabs: Titles of the sections of the site.
        ids: Anchors.
        elements: Numbers of elements in the text of the page.
    """

    def __init__(self, site: Path, path: str) -> None:
        """Read a page."""
        super().__init__()
        self.path = path
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.navigation: list[str] = []
        self.tabs: list[str] = []
        self.ids: set[str] = set()
        self.elements: Counter[str] = Counter()
        self._site = site
        self._open: list[tuple[str, str]] = []
        self.feed((site / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to."""
        values = {name: value or "" for name, value in attrs}
        self.ids.add(values.get("id", ""))
        self.fetched += [values[name] for name in _FETCHED if name in values]
        if tag == "link" and values["rel"] not in _NOT_FETCHED:
            self.fetched.append(values["href"])
        classes = " ".join(one for _, one in self._open).split()
        if "md-content__inner" in classes:
            self.elements[tag] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
            if "md-nav--primary" in classes:
                self.navigation.append(values["href"])
        if tag not in ("area", "br", "col", "hr", "img", "input", "link", "meta"):
            self._open.append((tag, values.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element, and those in it that need no end."""
        if tag in (one for one, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Note the titles of tabs."""
        if self._open and self._open[-1] == ("a", "md-tabs__link") and data.strip():
            self.tabs.append(data.strip())

    def target(self, link: str) -> str | None:
        """Return the file of the site that a link leads to; None if it leads out."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        place = (self._site / self.path).parent / unquote(parts.path)
        if not parts.path:
            return self.path
        if place.is_dir():
            place /= "index.html"
        return Path(os.path.normpath(place)).relative_to(self._site).as_posix()


class BuiltSite:
    """A folder with a built site."""

    def __init__(self, folder: Path) -> None:
        """Take a folder that `build` has made."""
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, BuiltPage]:
        """All pages by their path, but for the one that reports a missing page."""
        paths = [
            one.relative_to(self.folder).as_posix()
            for one in sorted(self.folder.rglob("*.html"))
        ]
        return {
            path: BuiltPage(self.folder, path) for path in paths if path != "404.html"
        }
