"""The documentation as a site: complete, and in need of no other host."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt

from tests.daemon.test_observability import free_port
from tests.docs.site import ROOT, BuiltSite, build, built_path
from tests.page.browser import browser
from tests.real_host.patience import wait_until

# The group is that of the browser.
pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.xdist_group("chromium"),
]

# The pages that readers look for. The navigation may have more: lists of folders.
PAGES: Final = sorted(
    one.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "plugins/**/*.md")
    for one in ROOT.glob(pattern)
)
# Elements whose number a wrong reading of Markdown changes.
COUNTED: Final = ("h1", "h2", "h3", "li", "ol", "ul", "pre", "td", "th", "img")
INDEX: Final = "docs/README.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return BuiltSite(folder)


def title_of(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(r"(?m)^# (.+)$", text)
    assert found
    return found[1].replace("`", "")


def in_commonmark(page: str) -> Counter[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = MarkdownIt("commonmark").enable("table").render(text)
    return Counter(re.findall(r"<(\w+)", shown))


def test_every_page_is_in_the_site_and_in_its_navigation(site: BuiltSite) -> None:
    home = site.pages["index.html"]
    reached = {home.target(link) for link in home.navigation}

    assert len(PAGES) > 90
    assert {built_path(page) for page in PAGES} - site.pages.keys() == set()
    assert {built_path(page) for page in PAGES} - reached == set()


def test_the_sections_are_those_of_the_index(site: BuiltSite) -> None:
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / INDEX).read_text(encoding="utf-8"))

    assert len(headings) == 3
    for page in ("index.html", built_path("docs/cluster.md")):
        assert site.pages[page].tabs == ["nri-resmgr", *headings]


def test_no_page_fetches_anything_of_another_host(site: BuiltSite) -> None:
    fetched = {
        (path, one)
        for path, page in site.pages.items()
        for one in page.fetched
        if not one.startswith("data:")
    }

    assert len(fetched) > len(site.pages)
    assert [one for one in fetched if any(urlsplit(one[1])[:2])] == []
    missing = [
        (path, one)
        for path, one in fetched
        if not (site.folder / str(site.pages[path].target(one))).is_file()
    ]
    assert missing == []


def test_no_style_fetches_anything_of_another_host(site: BuiltSite) -> None:
    styles = [one.read_text(encoding="utf-8") for one in site.folder.rglob("*.css")]
    sources = [
        source
        for style in styles
        for source in re.findall(r"(?:@import|url\()\s*[\"']?([^\"')]+)", style)
    ]

    assert len(styles) >= 2
    assert [one for one in sources if re.match(r"(?!data:)(\w+:|//)", one)] == []


def test_every_link_within_the_site_leads_somewhere(site: BuiltSite) -> None:
    broken = []
    for path, page in site.pages.items():
        for link in page.links:
            if (target := page.target(link)) is None:
                continue
            anchor = urlsplit(link).fragment
            there = site.pages.get(target)
            known = there.ids if there else {""}
            if not (site.folder / target).is_file() or anchor not in {"", *known}:
                broken.append((path, link))

    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_markdown_says(site: BuiltSite, page: str) -> None:
    shown = site.pages[built_path(page)].elements
    said = in_commonmark(page)

    assert {one: shown[one] for one in COUNTED} == {one: said[one] for one in COUNTED}


def test_bars_in_code_of_tables_have_no_backslash(site: BuiltSite) -> None:
    text = (site.folder / built_path("docs/command-line.md")).read_text("utf-8")

    assert "\\|" in (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    assert "\\|" not in re.sub(r"(?s)<pre>.*?</pre>", "", text)


def test_the_search_knows_each_page_by_its_title(site: BuiltSite) -> None:
    index = json.loads((site.folder / "search/search_index.json").read_text("utf-8"))
    titles = {one["location"]: one["title"] for one in index["docs"]}

    without = [
        page
        for page in PAGES
        if titles.get(built_path(page).removesuffix("index.html")) != title_of(page)
    ]
    assert without == []
    assert [one for one in titles if one.startswith(("tests/", "conf.d/"))] == []


def test_a_linked_file_is_shown_as_it_is(site: BuiltSite) -> None:
    page = site.pages[built_path("docs/configuration.md")]
    [link] = [one for one in page.links if "conf.d/balloons.conf" in one]

    target = page.target(link)
    assert target == "conf.d/balloons.conf/index.html"
    text = re.sub(r"<[^>]*>", "", (site.folder / target).read_text(encoding="utf-8"))
    [kind] = re.findall(r"(?m)^kind: \w+$", (ROOT / "conf.d/balloons.conf").read_text())
    assert kind in text


def _copied(folder: Path, index: str, page: str) -> Path:
    """Make a small repository with the site's code."""
    shutil.copytree(ROOT / "deploy" / "site", folder / "deploy" / "site")
    (folder / "docs").mkdir()
    (folder / "README.md").write_text("# Small\n\n[docs](docs/README.md)\n")
    (folder / "docs" / "README.md").write_text(index)
    (folder / "docs" / "page.md").write_text(page)
    return folder


_ROW: Final = (
    "# Index\n\n## People\n\n| Page | |\n|---|---|\n| [page](page.md) | it |\n"
)


@pytest.mark.parametrize(
    ("index", "page", "said"),
    [
        pytest.param(_ROW, "# Page\n", "", id="nothing is wrong"),
        pytest.param(
            _ROW, "# Page\n\n[x](gone.md)\n", "'gone.md'", id="a page that is missing"
        ),
        pytest.param(
            _ROW, "# Page\n\n[x](../gone/)\n", "'../gone/'", id="a missing folder"
        ),
        pytest.param(
            _ROW, "# Page\n\n[x](README.md#gone)\n", "'#gone'", id="a missing anchor"
        ),
        pytest.param(
            "# Index\n\n## People\n\nSee [page](page.md).\n",
            "# Page\n",
            'not included in the "nav" configuration:\n  - docs/page.md',
            id="a page without a row in the index",
        ),
    ],
)
def test_a_mistake_fails_the_build(
    tmp_path: Path, index: str, page: str, said: str
) -> None:
    done = build(_copied(tmp_path, index, page), tmp_path / "site")

    assert done.returncode == bool(said)
    assert said in done.stderr


@pytest.fixture
def served(site: BuiltSite) -> Iterator[str]:
    """Serve the site as any server would; yield its address."""
    port = free_port()
    words = ("--bind", "127.0.0.1", "--directory", str(site.folder), str(port))
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", *words], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _accepts(port), "the server has not started")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_browser_finds_a_page_without_another_host(served: str) -> None:
    with browser() as window:
        window.open(f"{served}/docs/kubectl/?q=balloons")
        titles = ".md-search-result__item h1"
        wait_until(lambda: window.texts(titles) != [], "the search finds nothing")
        found = window.texts(titles)
        copied = window.texts(".md-code__button, .md-clipboard")
        fetched = window.run(
            "return performance.getEntriesByType('resource').map(e => e.name)"
        )

        assert title_of("docs/balloons.md") in found
        assert copied != []
        assert len(fetched) > 3
        assert [one for one in fetched if not one.startswith((served, "blob:"))] == []
        assert window.complaints() == []
