"""The page of conformance names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def names_in(path: Path) -> set[str]:
    """Name the tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_test_on_the_page_exists() -> None:
    missing = [
        f"{path}::{name}" for path, name in NAMED if name not in names_in(ROOT / path)
    ]

    assert missing == []


def test_every_row_names_a_test_or_the_reason_for_none() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d", line)]
    empty = [row for row in rows if "`tests/" not in row and "not ours:" not in row]

    assert empty == []


def test_the_page_has_every_scenario_once() -> None:
    ids = re.findall(r"^\| ([A-Z]\d+[a-z]?) ", PAGE, flags=re.MULTILINE)

    assert len(ids) == len(set(ids))
    assert {f"F{number}" for number in range(1, 22)} <= set(ids)
    assert {f"A{number}" for number in range(1, 11)} <= set(ids)


def test_every_test_file_of_the_stub_s_sessions_is_on_the_page() -> None:
    here = ROOT / "tests" / "stub"
    kinds = ("handshake", "sync", "updates", "deadlines", "reconnect", "transport")
    files = {
        str(path.relative_to(ROOT))
        for kind in kinds
        for path in here.glob(f"test_{kind}*.py")
    }

    assert files - {path for path, _ in NAMED} == set()
