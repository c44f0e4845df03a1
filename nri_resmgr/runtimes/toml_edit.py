"""Sets keys of one table in a TOML text without changing any other byte."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Final, TypeAlias

from nri_resmgr.runtimes.errors import NotEditable, NotToml
from nri_resmgr.runtimes.toml_statements import BARE, Statement, statements

TablePath: TypeAlias = tuple[str, ...]
Value: TypeAlias = bool | str | list[str]

_INDENT: Final = "  "


def parse(path: str, text: str) -> dict[str, object]:
    """Parse a document; floats become pairs, so that NaN equals itself.

    Raises:
        NotToml: The text is not TOML 1.0, or has duplicate tables or keys.
    """
    try:
        return tomllib.loads(text, parse_float=lambda digits: ("float", digits))
    except tomllib.TOMLDecodeError as error:
        why = str(error)
        raise NotToml(path, why[:1].lower() + why[1:]) from None
    except RecursionError:
        raise NotToml(path, "it is nested too deep") from None


def table_of(
    document: Mapping[str, object], table: TablePath
) -> dict[str, object] | None:
    """Return the contents of a table; None if the document does not have it."""
    found: object = document
    for name in table:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found if isinstance(found, dict) else None


def value_of(content: Mapping[str, object], name: str) -> object:
    """Return the value of a key; None without one.

    Args:
        content: A table.
        name: The key; dots lead into tables below.
    """
    *inner, key = name.split(".")
    return (table_of(dict(content), tuple(inner)) or {}).get(key)


def is_value(found: object, wanted: Value) -> bool:
    """Return whether values and their types are equal: 0 is not false."""
    return type(found) is type(wanted) and found == wanted


def with_values(
    path: str, text: str, table: TablePath, values: Mapping[str, Value]
) -> str:
    """Return the text with keys of *table* set, in the order of *values*.

    An existing value is replaced in place; a missing key is added after the last one
    of its table; a missing table is added at the end.

    Args:
        path: The file, for error messages.
        text: A document.
        table: The table; added if missing, with the quotes that the document uses.
        values: The values to set; dots in their keys lead into tables below.

    Raises:
        NotToml: The text is not TOML.
        NotEditable: The table is inline or not a table, or the edited text would
            have other values than intended.
    """
    wanted = parse(path, text)
    for name, value in values.items():
        *inner, key = name.split(".")
        content = _made(path, wanted, (*table, *inner))
        if not is_value(content.get(key), value):
            text = _with_value(path, text, (*table, *inner, key), value)
            content[key] = value
    # A guard against mistakes above: a text with other values is never returned.
    try:
        is_right = parse(path, text) == wanted
    except NotToml:
        is_right = False
    if not is_right:
        raise NotEditable(path, "the edit would change other values")
    return text


def _made(
    path: str, document: dict[str, object], table: TablePath
) -> dict[str, object]:
    content = document
    for depth, name in enumerate(table, 1):
        found = content.setdefault(name, {})
        if not isinstance(found, dict):
            raise NotEditable(path, f"{'.'.join(table[:depth])} is not a table")
        content = found
    return content


def _with_value(path: str, text: str, key: TablePath, value: Value) -> str:
    table, found = key[:-1], tuple(statements(text))
    for one in found:
        if not one.is_header and one.path == key:
            return _replaced(text, one, value)
        if not one.is_header and one.path == key[: len(one.path)]:
            number = text.count("\n", 0, one.start) + 1
            raise NotEditable(path, f"line {number} has the table as an inline value")
    line = f"{key[-1]} = {_text_of(value)}"
    if last := _last_of_table(found, table):
        indent = _indent(text, last) + (_INDENT if last.is_header else "")
        return _inserted(text, last.end, indent + line)
    if last := _last_dotted(found, table):
        begin, end = last.parts[0][0], last.parts[len(table) - len(last.table) - 1][1]
        return _inserted(
            text, last.end, f"{_indent(text, last)}{text[begin:end]}.{line}"
        )
    return _appended(text, _header(text, table), _INDENT + line)


def _replaced(text: str, one: Statement, value: Value) -> str:
    begin, end = one.value
    quote = "'" if text[begin] == "'" else '"'
    return text[:begin] + _text_of(value, quote) + text[end:]


def _last_of_table(found: tuple[Statement, ...], table: TablePath) -> Statement | None:
    headers = [one for one in found if one.is_header and one.path == table]
    if not headers:
        return None
    start = found.index(headers[0])
    last = headers[0]
    for one in found[start + 1 :]:
        if one.is_header:
            break
        last = one
    return last


def _last_dotted(found: tuple[Statement, ...], table: TablePath) -> Statement | None:
    """Return the last dotted key of the table outside of its header."""
    named = [
        one
        for one in found
        if len(one.table) < len(table) < len(one.path)
        and one.path[: len(table)] == table
    ]
    return named[-1] if named else None


def _header(text: str, table: TablePath) -> str:
    quote = "'" if text.count("[plugins.'") > text.count('[plugins."') else '"'
    names = (
        name if BARE.fullmatch(name) else f"{quote}{name}{quote}" for name in table
    )
    return f"[{'.'.join(names)}]"


def _text_of(value: Value, quote: str = '"') -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"{quote}{value}{quote}"
        case _:
            return f"[{', '.join(_text_of(one, quote) for one in value)}]"


def _indent(text: str, one: Statement) -> str:
    line = text[one.start : one.end]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _inserted(text: str, at: int, line: str) -> str:
    newline = _newline(text)
    before = text[:at] if text[:at].endswith("\n") else text[:at] + newline
    return before + line + newline + text[at:]


def _appended(text: str, *lines: str) -> str:
    newline = _newline(text)
    if text and not text.endswith("\n"):
        text += newline
    if text:
        text += newline
    return text + "".join(line + newline for line in lines)


def _newline(text: str) -> str:
    first = text.partition("\n")[0]
    return "\r\n" if first.endswith("\r") else "\n"
