"""Parses YAML into plain values; errors name their line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import yaml

from nri_resmgr.config.errors import BadSyntax

# Characters. Larger than a ConfigMap can be; a wrong file must not exhaust memory.
MAX_TEXT: Final = 2 << 20

# Ten times the largest list of pods that fits into that size. More take seconds to
# read, and references in a short text can stand for more than fits into memory.
_MAX_VALUES: Final = 100_000

# Deeper nesting than any document has.
_MAX_DEPTH: Final = 64
_TOO_DEEP: Final = f"more than {_MAX_DEPTH} levels deep"

# libyaml's own limit since PyYAML 6.0.4 is 1,000 levels; before, it had none. It reads
# ahead, so that it may come first.
_TOO_DEEP_FOR_LIBYAML: Final = "exceeded maximum nesting depth"

# libyaml is ten times as fast, but missing in some builds of PyYAML.
_Safe: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Mark(Protocol):
    """A place in a text, counted from 0; libyaml has a class of its own."""

    line: int
    column: int


class _Loader(_Safe):  # type: ignore[misc] # the base class is chosen at run time
    """A safe loader that rejects duplicate keys."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key, _ in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None or name in seen:
            what = "a key must be text" if name is None else f"duplicate key {name!r}"
            raise yaml.constructor.ConstructorError(None, None, what, key.start_mark)
        seen.add(name)
    return loader.construct_mapping(node, deep=True)


def _whole_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    found: int = loader.construct_yaml_int(node)
    # Errors quote values. Python reads more hexadecimal digits than it writes decimal
    # ones, and raises ValueError then.
    str(found)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def parse_yaml(text: str, *, references: bool = True) -> object:
    """Parse *text*, one YAML document.

    Args:
        text: The document.
        references: Whether anchors and aliases (``&`` and ``*``) are allowed.

    Returns:
        Plain values; None for a text without content.

    Raises:
        BadSyntax: It is not YAML, has several documents or a duplicate key, has
            references that are not allowed or recursive, or is too large or too
            deep.
    """
    with _as_bad_syntax():
        _check_events(text, references=references)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a safe loader


def compose_yaml(text: str) -> yaml.Node | None:
    """Parse one YAML document into nodes, which have their places in the text.

    Raises:
        BadSyntax: As `parse_yaml`, but for duplicate keys.
    """
    with _as_bad_syntax():
        _check_events(text, references=True)
        return yaml.compose(text, Loader=_Loader)


@contextmanager
def _as_bad_syntax() -> Iterator[None]:
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = error.problem or error.context or "not YAML"
        if why == _TOO_DEEP_FOR_LIBYAML:
            why = _TOO_DEEP
        raise BadSyntax(why, *_place(mark)) from None
    except yaml.YAMLError as error:
        raise BadSyntax(" ".join(str(error).split())) from None
    except ValueError as error:
        # Dates that do not exist, numbers with too many digits, and characters that
        # cannot be encoded in UTF-8.
        raise BadSyntax(f"invalid value: {error}") from None


def _check_events(text: str, *, references: bool) -> None:
    if len(text) > MAX_TEXT:
        raise BadSyntax(f"{len(text)} characters, expected at most {MAX_TEXT}")
    counts = _Counts()
    for event in yaml.parse(text, Loader=_Loader):
        if not references and isinstance(event, yaml.AliasEvent):
            raise BadSyntax(
                "references (*) are not allowed here", *_place(event.start_mark)
            )
        counts.add(event)
        if counts.depth > _MAX_DEPTH:
            raise BadSyntax(_TOO_DEEP, *_place(event.start_mark))
        if counts.values > _MAX_VALUES:
            why = f"more than {_MAX_VALUES} values, those of references (*) included"
            raise BadSyntax(why, *_place_of(event))


class _Counts:
    """Counts values without building them; references count all that they stand for."""

    def __init__(self) -> None:
        self.values = self.depth = 0
        self._open: list[tuple[str | None, int]] = []  # with the count before each
        self._sizes: dict[str, int] = {}

    def add(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():  # most are
                self.values += 1
                if event.anchor:
                    self._sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                self._open.append((event.anchor, self.values))
                self.values += 1
                self.depth += 1
            case yaml.CollectionEndEvent():
                anchor, before = self._open.pop()
                self.depth -= 1
                if anchor:
                    self._sizes[anchor] = self.values - before
            case yaml.AliasEvent():
                if any(anchor == event.anchor for anchor, _ in self._open):
                    raise BadSyntax(
                        f"*{event.anchor} contains itself", *_place(event.start_mark)
                    )
                self.values += self._sizes.get(event.anchor or "", 0)


def _place_of(event: yaml.Event) -> tuple[int, int]:
    return _place(event.start_mark)


def _place(mark: _Mark | None) -> tuple[int, int]:
    """Return line and column, counted from 1; 0 where the parser has none."""
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)
