"""Tables in Markdown, written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_CELL: Final = re.compile(r"(?<!\\)\|")


def code(text: str) -> str:
    """Write text as code."""
    return f"`{text}`" if text else ""


def codes(texts: Iterable[str]) -> str:
    """Write a list of words as code."""
    return ", ".join(map(code, texts))


def escaped(text: str) -> str:
    """Escape text for a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; the cells are Markdown, with vertical bars escaped."""
    lines = [_line(header), "|" + "---|" * len(header)]
    return "\n".join([*lines, *map(_line, rows)])


def read_rows(body: str) -> dict[str, list[str]]:
    """Return the rows of the first table in *body* by the word of their first cell.

    The word is the first one in backticks.
    """
    found: dict[str, list[str]] = {}
    for line in body.splitlines():
        if not line.startswith("| "):
            continue
        cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
        if word := re.match(r"`([^`]+)`", cells[0]):
            found[word[1]] = cells
    return found


def merged(
    body: str,
    header: Sequence[str],
    generated: Mapping[str, Sequence[str | None]],
) -> str:
    """Write a table that is partly by hand.

    Args:
        body: The present table; its order of rows is kept.
        header: Of all columns.
        generated: By the word in the first cell: the further cells; None for one that
            is written by hand.
    """
    old = read_rows(body)
    words = [word for word in old if word in generated]
    words += [word for word in generated if word not in old]
    rows = []
    for word in words:
        cells = old.get(word, [])
        # What stands beside the word, such as a mark, is by hand.
        row = [cells[0] if cells else code(word)]
        for place, cell in enumerate(generated[word], 1):
            by_hand = cells[place] if place < len(cells) else ""
            row.append(by_hand if cell is None else cell)
        rows.append(row)
    return table(header, rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
