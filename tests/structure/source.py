"""Counts of the source: lines, `Any`, late imports, imports between packages."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_FOLDERS: Final = ("nri_proto", "nri_resmgr")
_APP: Final = "nri_resmgr.app"


class Module(NamedTuple):
    """A module's source."""

    text: str
    tree: ast.Module


@cache
def modules() -> Mapping[str, Module]:
    """Read each module of ours that is not generated, by its dotted name."""
    found = {}
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "_gen" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                text = path.read_text(encoding="utf-8")
                name = ".".join(parts).removesuffix(".__init__")
                found[name] = Module(text, ast.parse(text))
    return found


def package_of(module: str) -> str:
    """Name the package that a module is counted with: of `nri_resmgr` the next part."""
    parts = module.split(".")[:2]
    return ".".join(parts if (ROOT / Path(*parts)).is_dir() else parts[:1])


def lines_by_package() -> Counter[str]:
    """Count lines that are not blank, comments and docstrings among them."""
    found: Counter[str] = Counter()
    for name, module in modules().items():
        lines = module.text.splitlines()
        found[package_of(name)] += sum(bool(line.strip()) for line in lines)
    return found


def uses_of_any() -> int:
    """Count where the name `Any` stands, but for the lines that import it."""
    return sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for module in modules().values()
        for node in ast.walk(module.tree)
    )


def late_imports() -> int:
    """Count statements that import inside of functions."""
    return sum(1 for module in modules().values() for _ in late_imports_of(module.tree))


def late_imports_of(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Find the statements that import inside of functions."""
    for node in _inner(tree, within=False):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def without_reason(module: Module) -> list[int]:
    """Return the lines of late imports, and of blocks for types, without a comment.

    It is on the statement or on the line above. Of several imports in a row, the first
    one may have it for all.
    """
    lines = module.text.splitlines()
    found, reasoned = [], set[int]()
    for one in (*late_imports_of(module.tree), *_blocks_for_types(module.tree)):
        first, last = one.lineno, one.end_lineno or one.lineno
        is_below = lines[first - 2].lstrip().startswith("#") or first - 1 in reasoned
        if is_below or any("#" in line for line in lines[first - 1 : last]):
            reasoned.add(last)
        else:
            found.append(first)
    return found


def _blocks_for_types(tree: ast.Module) -> Iterator[ast.If]:
    for node in tree.body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node


def _inner(node: ast.AST, *, within: bool) -> Iterator[ast.AST]:
    """Yield all nodes inside of functions, each once."""
    for child in ast.iter_child_nodes(node):
        if within:
            yield child
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _inner(child, within=within or is_function)


def arrows_of_app() -> frozenset[tuple[str, str]]:
    """Return which direct children of `app` import which, late imports included."""
    found = set()
    for name, module in modules().items():
        if (importer := _child(name)) is None:
            continue
        for node in ast.walk(module.tree):
            for imported in _imported(node):
                if (child := _child(imported)) not in (None, importer):
                    found.add((importer, str(child)))
    return frozenset(found)


def floors(arrows: frozenset[tuple[str, str]]) -> int:
    """Return the length of the longest chain of imports; a circle counts as one."""
    below = _below(arrows)
    reach = {one: _reachable(one, below) for one in below}

    @cache
    def height(one: str) -> int:
        lower = {two for two in reach[one] if one not in reach[two]}
        return 1 + max(map(height, lower), default=0)

    return max(map(height, below), default=0)


def direct(arrows: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Leave out imports that a longer chain implies."""
    below = _below(arrows)
    return frozenset(
        (importer, imported)
        for importer, imported in arrows
        if not any(
            imported in _reachable(other, below)
            for other in below[importer] - {imported}
        )
    )


def _below(arrows: frozenset[tuple[str, str]]) -> Mapping[str, set[str]]:
    below: dict[str, set[str]] = {}
    for importer, imported in arrows:
        below.setdefault(importer, set()).add(imported)
        below.setdefault(imported, set())
    return below


def _reachable(one: str, below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = set(below[one])
    while waiting:
        two = waiting.pop()
        found.add(two)
        waiting |= below[two] - found
    return found


def _child(module: str) -> str | None:
    rest = module.removeprefix(f"{_APP}.")
    return rest.partition(".")[0] if rest != module else None


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (name.name for name in names)
        case ast.ImportFrom(module=str(module), names=names) if module == _APP:
            yield from (f"{module}.{name.name}" for name in names)
        case ast.ImportFrom(module=str(module)):
            yield module


def length(node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> int:
    """Count the lines of a function, without blank ones and its docstring."""
    end = node.end_lineno or node.lineno
    numbers = set(range(node.lineno, end + 1))
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        numbers -= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = text.splitlines()
    return sum(bool(lines[number - 1].strip()) for number in numbers)
