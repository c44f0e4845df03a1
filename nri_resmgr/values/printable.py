"""Text of others made safe for terminals and logs: invisible characters are escaped.

Names, labels and annotations come from the authors of pods. A terminal obeys escape
sequences and C1 controls in them, a bidirectional control reorders what is read, and a
line break makes a second line that the daemon never wrote.
"""

from __future__ import annotations

from typing import Any, Final

LINES: Final = "\n\t"
"""Characters that a text of several lines keeps: `printable` with *keep*."""


def printable(text: str, keep: str = "") -> str:
    r"""Return *text* with an escape for each character that has no glyph of its own.

    These are all of Unicode's categories Other and Separator but the blank: C0, DEL,
    C1, line separators, bidirectional controls, zero widths, lone surrogates, and what
    this Python's Unicode does not know yet. A second application changes nothing.

    Args:
        text: Any text.
        keep: Characters that stay as they are.

    >>> print(printable("web\x1b[2J\u202e\n"))
    web\x1b[2J\u202e\n
    """
    # Nearly all texts are printable: this takes 50 ns for a log line.
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else _escape(one) for one in text
    )


def printable_json(text: str) -> str:
    r"""Return what `json.dumps` wrote, `printable` and with the same meaning.

    Its line breaks are kept: they are none of a value.

    >>> print(printable_json('"a\x7fb\u202e"'))
    "a\u007fb\u202e"
    """
    # Of ASCII, json.dumps escapes all in strings but DEL; others have line breaks only.
    if text.isascii():
        return text.replace("\x7f", r"\u007f")
    return "".join(
        one if one.isprintable() or one == "\n" else _json_escape(one) for one in text
    )


def printable_data(data: Any) -> Any:
    """Return data of JSON with all its keys and texts `printable`."""
    match data:
        case str():
            return printable(data)
        case dict():
            return {printable(key): printable_data(one) for key, one in data.items()}
        case list():
            return [printable_data(one) for one in data]
        case _:
            return data


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def _json_escape(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)
    )
