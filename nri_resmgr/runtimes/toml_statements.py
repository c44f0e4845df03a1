"""Finds the statements of a TOML text: headers, and keys with their values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

import msgspec

# Up to two quotes of the text may precede the closing """.
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'",
    re.DOTALL,
)
_COMMENT: Final = re.compile(r"#[^\n]*")
_BLANKS: Final = re.compile(r"[ \t]*")
BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[^#\r\n]*")
_LINE_REST: Final = re.compile(r"[^\n]*\n?")


class Statement(msgspec.Struct, frozen=True):
    """A header, or a key with its value, as whole lines.

    Attributes:
        table: The path of its header.
        key: The path below the table; empty for a header.
        is_array: Whether it is a header in double brackets.
        start: Start of its first line.
        end: End of its last line.
        parts: Start and end of each part of its own path.
        value: Start and end of its value; equal for a header.
    """

    table: tuple[str, ...]
    key: tuple[str, ...]
    is_array: bool
    start: int
    end: int
    parts: tuple[tuple[int, int], ...]
    value: tuple[int, int]

    @property
    def path(self) -> tuple[str, ...]:
        """The whole path, from the top of the document."""
        return self.table + self.key

    @property
    def is_header(self) -> bool:
        """True if it begins a table."""
        return not self.key


def statements(text: str) -> Iterator[Statement]:
    r"""Yield the statements of a text that tomllib accepts, in order.

    Comments, blank lines and text after a value are not part of a statement.

    Source:
        TOML 1.0.0.

    >>> for one in statements('[a."b.c"]  # why\nd = [1,\n 2]\n'):
    ...     print(one.path, one.start, one.end)
    ('a', 'b.c') 0 17
    ('a', 'b.c', 'd') 17 29
    """
    at = 0
    table: tuple[str, ...] = ()
    while at < len(text):
        first = _end_of(_BLANKS, text, at)
        if first == len(text):
            return
        if text[first] in "#\r\n":
            at = _end_of(_LINE_REST, text, first)
            continue
        found = _header(text, at) if text[first] == "[" else _key(text, at, table)
        table, at = found.table, found.end
        yield found


def _header(text: str, start: int) -> Statement:
    first = _end_of(_BLANKS, text, start)
    is_array = text.startswith("[[", first)
    names, parts, at = _path(text, first + (2 if is_array else 1))
    end = _end_of(_LINE_REST, text, at)
    return Statement(names, (), is_array, start, end, parts, (at, at))


def _key(text: str, start: int, table: tuple[str, ...]) -> Statement:
    names, parts, at = _path(text, start)
    begin = _end_of(_BLANKS, text, at + 1)
    end = _end_of_value(text, begin)
    line_end = _end_of(_LINE_REST, text, end)
    return Statement(table, names, False, start, line_end, parts, (begin, end))


_Path = tuple[tuple[str, ...], tuple[tuple[int, int], ...], int]


def _path(text: str, at: int) -> _Path:
    """Parse a dotted path; return its names, their places, and its end."""
    names: list[str] = []
    parts: list[tuple[int, int]] = []
    while True:
        begin = _end_of(_BLANKS, text, at)
        pattern = _STRING if text[begin] in "\"'" else BARE
        end = _end_of(pattern, text, begin)
        parts.append((begin, end))
        names.append(_name(text[begin:end]))
        at = _end_of(_BLANKS, text, end)
        if text[at] != ".":
            return tuple(names), tuple(parts), at
        at += 1


def _name(raw: str) -> str:
    if raw[0] in "\"'":
        name: str = tomllib.loads(f"name = {raw}")["name"]
        return name
    return raw


def _end_of_value(text: str, begin: int) -> int:
    if text[begin] in "\"'":
        return _end_of(_STRING, text, begin)
    if text[begin] not in "[{":
        plain = _end_of(_PLAIN, text, begin)
        return begin + len(text[begin:plain].rstrip())
    depth, at = 0, begin
    while True:
        if match := _STRING.match(text, at) or _COMMENT.match(text, at):
            at = match.end()
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        at += 1
        if not depth:
            return at


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
