"""Examples for authors import public names only, and the tables show changes."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.generators import PAGES
from tests.docs.markdown import read_rows
from tests.docs.public_names import MODULES, public_names

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that a program imports names from, and these."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names):
                yield from ((one.name, "") for one in names if _is_ours(one.name))
            case ast.ImportFrom(str(module), names) if _is_ours(module):
                yield from ((module, one.name) for one in names)


def _is_ours(module: str) -> bool:
    return module.startswith("nri_")


def private(text: str) -> list[tuple[str, str]]:
    """Return what a program imports that is not public."""
    return [
        (module, name)
        for module, name in imported(text)
        if module not in MODULES or name not in importlib.import_module(module).__all__
    ]


@pytest.mark.parametrize(
    "page", ["write-a-plugin.md", "testing-plugins.md", "example-plugins.md"]
)
def test_the_pages_for_authors_import_public_names_only(page: str) -> None:
    blocks = _BLOCK.findall((PAGES / page).read_text(encoding="utf-8"))

    assert len(blocks) >= 3
    assert [found for block in blocks for found in private(block)] == []


def test_the_template_imports_public_names_only() -> None:
    text = (ROOT / "plugins/template/__main__.py").read_text(encoding="utf-8")

    assert len(list(imported(text))) > 5
    assert private(text) == []


def test_a_private_import_is_found() -> None:
    text = "from nri_resmgr.stub import serve, gone\nimport nri_resmgr.app.plugin\n"

    assert private(text) == [
        ("nri_resmgr.stub", "gone"),
        ("nri_resmgr.app.plugin", ""),
    ]


def test_a_table_has_the_parameters_of_functions() -> None:
    rows = read_rows(public_names()["names of nri_resmgr.stub"](""))

    assert "serve(plugin, *, name, index, socket, options, flags)" in rows


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_table(module: str) -> None:
    rows = read_rows(public_names()[f"names of {module}"](""))

    names = {word.partition("(")[0] for word in rows}
    assert names == set(importlib.import_module(module).__all__)
