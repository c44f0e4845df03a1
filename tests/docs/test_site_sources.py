"""How the site reads the repository: its links, its Markdown, its index."""

from __future__ import annotations

import pytest

from deploy.site.dialect import with_deep_items, with_plain_bars
from deploy.site.links import linked, resolved, with_links
from deploy.site.navigation import navigation
from deploy.site.sources import ROOT, LinkedFiles

PAGE = """\
[one](../deploy/README.md#top), ![two](pictures/a.svg), [three](https://a.example/b.md)

```sh
echo '[four](five.md)'
```

- item [six](#here)

  ````text
  ```
  [seven](eight.md)
  ````
  [nine](ten/)
"""
INDEX = """\
# Index

See [people](#people) and the [words](words.md).

## People

How-to:

| Page | |
|---|---|
| [a.md](a.md) | A, as in [adr/](adr/). |
| [deploy/](../deploy/README.md) | B |

Reference:

| Page | |
|---|---|
| [words.md](words.md) | C |
| [adr/](adr/) | D |

## Others

| Page | |
|---|---|
| [a.md](a.md) | A |
| [b.md](b.md) | E |
"""
FOLDERS = {
    "deploy/README.md": ("deploy/README.md", "deploy/image/README.md"),
    "docs/adr": ("docs/adr/index.md", "docs/adr/1.md"),
}


def test_links_of_a_page_are_found_but_for_those_in_code() -> None:
    assert [*linked("docs/page.md", PAGE)] == [
        "deploy/README.md",
        "docs/pictures/a.svg",
        "docs/ten",
    ]


def test_a_link_is_changed_and_its_anchor_and_all_else_kept() -> None:
    changed = with_links(PAGE, str.upper)

    assert changed == (
        PAGE.replace("../deploy/README.md", "../DEPLOY/README.MD")
        .replace("pictures/a.svg", "PICTURES/A.SVG")
        .replace("ten/", "TEN/")
    )


@pytest.mark.parametrize(
    ("page", "target", "path"),
    [
        ("README.md", "docs/", "docs"),
        ("docs/a.md", "b.md", "docs/b.md"),
        ("deploy/image/README.md", "../../README.md", "README.md"),
    ],
)
def test_a_link_leads_from_the_folder_of_its_page(
    page: str, target: str, path: str
) -> None:
    assert resolved(page, target) == path


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("| `a\\|b` |\n", "| `a|b` |\n", id="in code of a table"),
        pytest.param("| a\\|b |\n", "| a\\|b |\n", id="in words of a table"),
        pytest.param("`a\\|b`\n", "`a\\|b`\n", id="in code beside tables"),
        pytest.param(
            "```\n| `a\\|b` |\n```\n", "```\n| `a\\|b` |\n```\n", id="a block"
        ),
    ],
)
def test_bars_in_code_of_tables_have_no_backslash(text: str, read: str) -> None:
    assert with_plain_bars(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("- a\n  b\n", "- a\n    b\n", id="a second line"),
        pytest.param("1. a\n\n   b\n", "1. a\n\n    b\n", id="a paragraph"),
        pytest.param("- a\n  - b\n", "- a\n    - b\n", id="a list"),
        pytest.param(
            "- a\n\n  b\n- c\n", "- a\n\n    b\n\n- c\n", id="an item after a paragraph"
        ),
        pytest.param("- a\n- b\n", "- a\n- b\n", id="an item after a line"),
        pytest.param(
            "- a\n\n  ```\n  b\n   c\n  ```\n",
            "- a\n\n    ```\n    b\n     c\n    ```\n",
            id="a block of code",
        ),
        pytest.param("- a\n\nb\n", "- a\n\nb\n", id="the end of the list"),
        pytest.param("```\n- a\n  b\n```\n", "```\n- a\n  b\n```\n", id="no list"),
    ],
)
def test_what_belongs_to_an_item_is_four_columns_deep(text: str, read: str) -> None:
    assert with_deep_items(text) == read


def test_the_navigation_has_the_order_of_the_index_and_each_page_once() -> None:
    found = navigation(INDEX, lambda path: FOLDERS.get(path, (path,)))

    assert found == [
        {"nri-resmgr": ["README.md", "docs/README.md", "docs/words.md"]},
        {
            "People": [
                {"How-to": ["docs/a.md", {"deploy/": [*FOLDERS["deploy/README.md"]]}]},
                {"Reference": [{"adr/": [*FOLDERS["docs/adr"]]}]},
            ]
        },
        {"Others": ["docs/b.md"]},
    ]


def test_pages_files_and_folders_are_found_by_links() -> None:
    found = LinkedFiles()

    assert {"CHANGELOG.md", "docs/adr/0001-sans-io-wire.md"} <= found.pages
    assert {"docs/pictures/node.svg", "docs/schema/nri-resmgr.schema.json"} <= (
        found.media
    )
    assert {"conf.d/balloons.conf", "tests/faults"} <= found.shown
    assert found.page_of("deploy/monitoring") == "deploy/monitoring/README.md"
    assert found.page_of("conf.d/balloons.conf") == "conf.d/balloons.conf.md"
    text = (ROOT / "conf.d/balloons.conf").read_text(encoding="utf-8")
    assert text in found.text_of("conf.d/balloons.conf")
