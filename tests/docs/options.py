"""The tables of options, recorded while the readers read sample documents.

Methods of `Table` are replaced by ones that note each call, as there is no other place
where key, type, limits and default of all options stand together. An empty document
shows defaults, a full one shows types.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, Final

import yaml

from nri_resmgr.config import API_VERSION, parse_config
from nri_resmgr.config.table import Table
from tests.docs.documents import EMPTY, EVERYTHING, EXAMPLE
from tests.docs.markdown import code, codes, merged

# Where several calls read one key, the one that stands last here says most; a call
# that found the key says more than one that did not.
_METHODS: Final = (
    "table",
    "open_table",
    "tables",
    "text",
    "texts",
    "amount",
    "name",
    "flag",
    "number",
    "choice",
    "choices",
)

_ENDLESS: Final = 1 << 62

_TYPES: Final = {
    "table": "mapping",
    "open_table": "mapping",
    "tables": "list of mappings",
    "text": "text",
    "texts": "list of text",
    "amount": "text or number",
    "name": "text",
    "flag": "boolean",
}

# Mappings whose keys are listed as options; those of other mappings have other pages.
_OPENED: Final = ("availableResources", "reservedResources", "preserve", "control")


class Notes:
    """Calls of `Table` by the readers.

    Attributes:
        keys: By the path of a mapping: the keys that it may have.
        calls: By the path of a key: the method, and its arguments by their names.
        absent: By the path of a key that was absent: the default that was used.
    """

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, ...]] = {}
        self.calls: dict[str, tuple[str, dict[str, Any]]] = {}
        self.absent: dict[str, object] = {}
        self._weights: dict[str, tuple[bool, int]] = {}

    def note(self, method: str, table: Table, arguments: dict[str, Any]) -> None:
        """Note one call; of several for one key the one that says most counts."""
        key = arguments["key"]
        path = _plain(table.at(key))
        weight = (key in table.rows, _METHODS.index(method))
        if weight >= self._weights.get(path, weight):
            self._weights[path] = weight
            self.calls[path] = method, arguments
        if key not in table.rows and "default" in arguments:
            self.absent[path] = arguments["default"]


def options(kind: str, at: str, but: Collection[str] = ()) -> Callable[[str], str]:
    """Make the generator of a table of options.

    Args:
        kind: Of the document.
        at: Path of the mapping whose options these are.
        but: Options that another table has.
    """

    def generate(body: str) -> str:
        types, defaults = _notes_of(kind)
        rows = {}
        for path in _paths(types, at):
            if (name := path.removeprefix(f"{at}.")) not in but:
                rows[name] = (_type(types, path), _default(types, defaults, path), None)
        return merged(body, ("option", "type", "default", "meaning"), rows)

    return generate


def _paths(notes: Notes, at: str) -> Iterator[str]:
    for key in notes.keys[at]:
        path = f"{at}.{key}"
        if key in _OPENED and path in notes.keys:
            yield from (f"{path}.{below}" for below in notes.keys[path])
        else:
            yield path


def _type(notes: Notes, path: str) -> str | None:
    if path not in notes.calls:
        return "mapping" if path in notes.keys else None
    method, arguments = notes.calls[path]
    match method:
        case "number":
            low, high = _range(notes, path)
            return f"number, {low} " + ("or more" if high >= _ENDLESS else f"to {high}")
        case "choice":
            return _words(arguments["choices"], "name")
        case "choices":
            return f"list of {_words(arguments['choices'], 'names')}"
        case _:
            return _TYPES[method]


def _range(notes: Notes, path: str) -> tuple[int, int]:
    _, arguments = notes.calls[path]
    return arguments["low"], arguments["high"]


def _words(choices: Sequence[str], names: str) -> str:
    if any(EXAMPLE in word for word in choices):
        return names
    return codes(str(word) for word in choices if word)


def _default(types: Notes, notes: Notes, path: str) -> str | None:
    """Write the reader's default; None where it only means "absent"."""
    match notes.absent.get(path):
        case bool() as flag:
            return code(str(flag).lower())
        case int() as number:
            # Out of range it only means "absent".
            low, high = _range(types, path)
            return code(str(number)) if low <= number <= high else None
        case str() as text if text:
            return code(str(text))
        case list() | tuple():
            return code("[]")
        case _:
            return None


@functools.cache
def _notes_of(kind: str) -> tuple[Notes, Notes]:
    return _noted(kind, EVERYTHING[kind]), _noted(kind, EMPTY[kind])


def _noted(kind: str, spec: object) -> Notes:
    document = {"apiVersion": API_VERSION, "kind": kind, "spec": spec}
    with _noting() as notes:
        parse_config(yaml.safe_dump(document))
    return notes


@contextmanager
def _noting() -> Iterator[Notes]:
    notes = Notes()
    before = {name: Table.__dict__[name] for name in (*_METHODS, "read")}
    for name in _METHODS:
        setattr(Table, name, _noting_method(name, before[name], notes))
    Table.read = classmethod(_noting_read(before["read"].__func__, notes))  # type: ignore[assignment,method-assign]
    try:
        yield notes
    finally:
        for name, method in before.items():
            setattr(Table, name, method)


def _noting_method(
    name: str, method: Callable[..., object], notes: Notes
) -> Callable[..., object]:
    parameters = signature(method)

    @functools.wraps(method)
    def noting(table: Table, *args: Any, **kwargs: Any) -> object:
        bound = parameters.bind(table, *args, **kwargs).arguments
        notes.note(name, table, bound)
        return method(table, *args, **kwargs)

    return noting


def _noting_read(method: Callable[..., Table], notes: Notes) -> Callable[..., Table]:
    def noting(
        cls: type[Table], document: object, *keys: str, path: str = "$"
    ) -> Table:
        known = notes.keys.setdefault(_plain(path), keys)
        # Several readers may each name a part.
        notes.keys[_plain(path)] = tuple(dict.fromkeys((*known, *keys)))
        return method(cls, document, *keys, path=path)

    return noting


def _plain(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)
