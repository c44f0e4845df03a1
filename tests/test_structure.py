"""Nothing grows into a room that is about everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("nri_proto", "nri_resmgr", "plugins", "tests")

# Where a file or function got longer, it was about two things.
MAX_FILE, MAX_FUNCTION, MAX_CLASS = 300, 40, 250


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if "_gen" not in path.parts:
                yield path


def length(node: ast.AST) -> int:
    """Lines of a definition without its docstring."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    lines = (node.end_lineno or 0) - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


@cache
def definitions() -> tuple[tuple[str, type[ast.AST], int], ...]:
    """Return each definition that may be too long: where, its kind, its lines."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", type(node), lines)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (lines := length(node)) > MAX_FUNCTION
    )


def too_long(kinds: tuple[type[ast.AST], ...], limit: int) -> list[str]:
    return [
        f"{where} has {lines} lines"
        for where, kind, lines in definitions()
        if issubclass(kind, kinds) and lines > limit
    ]


def test_files_are_short() -> None:
    counts = {path: len(path.read_text().splitlines()) for path in sources()}

    assert {p.name: n for p, n in counts.items() if n > MAX_FILE} == {}


def test_functions_are_short() -> None:
    assert too_long((ast.FunctionDef, ast.AsyncFunctionDef), MAX_FUNCTION) == []


def test_classes_are_short() -> None:
    assert too_long((ast.ClassDef,), MAX_CLASS) == []
