"""The table of log events, by reading the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

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
        if not one.event:
            continue
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


def logged() -> Iterator[Logged]:
    """Find the calls of the loggers of modules; an event that is computed is empty."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        component = ".".join(path.relative_to(_PACKAGE).with_suffix("").parts)
        component = component.removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = dict(_named_constants(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for event in _events(node, names):
                    yield Logged(event, _level(node), component, _fields(node))


def _decisions() -> Iterator[Logged]:
    """Yield the lines of decisions, whose names are in a table."""
    component = DecisionLog.__module__.partition(".")[2]
    for name in EVENT_NAMES.values():
        yield Logged(name, "info", component, ())


def _named_constants(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Find variables that are one of some texts."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if found := _texts(value):
                    yield name, found


def _texts(value: ast.expr) -> list[str]:
    match value:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.IfExp(body=one, orelse=other):
            return [*_texts(one), *_texts(other)]
        case _:
            return []


def _events(call: ast.Call, names: Mapping[str, list[str]]) -> list[str]:
    function = call.func
    is_log = (
        isinstance(function, ast.Attribute)
        and function.attr in _LEVELS
        and isinstance(function.value, ast.Name)
        and function.value.id == "log"
    )
    if not is_log or not call.args:
        return []
    event = call.args[0]
    found = names.get(event.id) if isinstance(event, ast.Name) else _texts(event)
    return found or [""]


def _level(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr


def _fields(call: ast.Call) -> tuple[str, ...]:
    return tuple(keyword.arg for keyword in call.keywords if keyword.arg)


def _joined(levels: Iterator[str]) -> str:
    found = set(levels)
    return ", ".join(level for level in _LEVELS if level in found)
