"""The table of log events, by reading the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

from nri_resmgr.app.observing.decision_log import EVENT_NAMES, DecisionLog
from tests.docs.markdown import code, codes, table

ROOT: Final = Path(__file__).parents[2]
_PACKAGE: Final = ROOT / "nri_resmgr"
_LEVELS: Final = ("debug", "info", "warning", "error")


class Logged(NamedTuple):
    """A call of a logger; *fields* are those that it names."""

    event: str
    level: str
    component: str
    fields: tuple[str, ...]


def log_events(_: str) -> str:
    """Write every event with its levels, the components that log it, its fields."""
    rows: dict[str, list[Logged]] = {}
    for one in (*logged(), *_decisions()):
        rows.setdefault(one.event, []).append(one)
    return table(
        ("event", "level", "component", "fields"),
        (
            (
                code(event),
                _joined(one.level for one in found),
                codes(sorted({one.component for one in found})),
                codes(dict.fromkeys(name for one in found for name in one.fields)),
            )
            for event, found in sorted(rows.items())
        ),
    )


def event_names() -> set[str]:
    """Return the names of all events of the log."""
    return {one.event for one in (*logged(), *_decisions())}


@cache
def logged() -> tuple[Logged, ...]:
    """Find the lines of the loggers of modules, as far as their names are literals."""
    return tuple(_lines())


def components_of_computed() -> set[str]:
    """Name the components that log events whose names are no literals."""
    return {component for component, tree in _modules() if any(computed(tree))}


def computed(tree: ast.AST) -> Iterator[ast.expr]:
    """Find lines whose event is computed, and methods of loggers under other names."""
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    yield from (one for one in calls if _is_level(one.func) and _literal(one) is None)
    called = {one.func for one in calls}
    for node in nodes:
        if isinstance(node, ast.expr) and node not in called and _is_level(node):
            yield node


def _lines() -> Iterator[Logged]:
    for component, tree in _modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and _is_level(node.func)):
                continue
            if (event := _literal(node)) is not None:
                yield Logged(event, node.func.attr, component, _fields(node))


def _decisions() -> Iterator[Logged]:
    """Yield the lines of decisions, whose names are in a table."""
    component = DecisionLog.__module__.partition(".")[2]
    for name in EVENT_NAMES.values():
        yield Logged(name, "info", component, ())


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        component = ".".join(path.relative_to(_PACKAGE).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield component.removesuffix(".__init__"), tree


def _is_level(function: ast.expr) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _LEVELS
        and isinstance(function.value, ast.Name)
        and function.value.id == "log"
    )


def _literal(call: ast.Call) -> str | None:
    match call.args:
        case [ast.Constant(value=str(event))]:
            return event
        case _:
            return None


def _fields(call: ast.Call) -> tuple[str, ...]:
    return tuple(keyword.arg for keyword in call.keywords if keyword.arg)


def _joined(levels: Iterator[str]) -> str:
    found = set(levels)
    return ", ".join(level for level in _LEVELS if level in found)
