"""Tables of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from nri_resmgr.cli.look import PLAIN, Look
from nri_resmgr.values.printable import printable

_GAP: Final = "  "
_NARROWEST: Final = 8  # columns of a cell that is folded

# A cell is folded after what separates its parts: those of a CPU list or of a name.
_PARTS: Final = re.compile(r"[^ ,/;:-]*[ ,/;:-]+|[^ ,/;:-]+")
_WORDS: Final = re.compile(r"[^ ]* +|[^ ]+")


def format_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    look: Look = PLAIN,
    styles: Sequence[str] = (),
) -> str:
    """Align columns, two blanks apart; cells are made printable.

    Where the table is wider than *look* allows, cells of its widest columns are folded.
    *styles* has that of each row; empty texts are none.

    >>> print(format_table(("name", "CPUs"), [("web", "0-3"), ("database", "4")]))
    name      CPUs
    web       0-3
    database  4
    >>> print(format_table(("name", "CPUs"), [("web", "0-3,8-11,16")], Look(width=14)))
    name  CPUs
    web   0-3,8-
          11,16
    """
    lines = [tuple(header), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(header))]
    if look.width:
        widths = _narrowed(widths, tuple(map(len, header)), look.width)
    shown = []
    for line, style in zip_longest(lines, ("title", *styles), fillvalue=""):
        rows_of_line = _folded_row(line, widths)
        shown += [look.paint(style, row) if style else row for row in rows_of_line]
    return "\n".join(shown)


def _narrowed(widths: Sequence[int], headers: Sequence[int], columns: int) -> list[int]:
    """Return widths of columns that fit, as far as the names of columns allow."""
    least = [
        min(width, max(header, _NARROWEST))
        for width, header in zip(widths, headers, strict=True)
    ]
    found = list(widths)
    excess = sum(found) + len(_GAP) * (len(found) - 1) - columns
    while excess > 0:
        room = [width - low for width, low in zip(found, least, strict=True)]
        if not any(room):
            break
        # The widest one of those that can be narrower.
        widest = max(
            (n for n, left in enumerate(room) if left), key=lambda n: (found[n], -n)
        )
        found[widest] -= 1
        excess -= 1
    return found


def _folded_row(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [fold(cell, width) for cell, width in zip(line, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
        yield _GAP.join(padded).rstrip()


def fold(text: str, width: int) -> list[str]:
    """Fold a text to lines of at most *width* columns, after separators if possible.

    >>> fold("shop/web-7d9f/nginx", 10), fold("abcdef", 4), fold("", 4)
    (['shop/web-', '7d9f/nginx'], ['abcd', 'ef'], [''])
    """
    return _folded(text, width, _PARTS)


def fold_words(text: str, width: int) -> list[str]:
    """Fold a sentence to lines of at most *width* columns, between words if possible.

    >>> fold_words("refused from /a-b", 13)
    ['refused from', '/a-b']
    """
    return _folded(text, width, _WORDS)


def _folded(text: str, width: int, parts: re.Pattern[str]) -> list[str]:
    if len(text) <= width:
        return [text]
    lines = [""]
    for part in parts.findall(text):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def format_changes(
    header: Sequence[str], rows: Iterable[Sequence[str]], refused: str
) -> str:
    """Align changes in a table, with the sentences of refusals below.

    Args:
        header: Of the columns; the last two are the old and the new value.
        rows: The last three cells are the property, its old and its new value, which
            are empty for none.
        refused: The property of rows whose values are sentences.
    """
    cells, sentences = [], []
    for row in rows:
        *first, what, before, after = row
        if what == refused:
            sentences += [f"  {printable(one)}" for one in (before, after) if one]
            before, after = (refused if one else "" for one in (before, after))
        cells.append((*first, what, before or "-", after or "-"))
    table = format_table(header, cells)
    return "\n".join((table, "", refused, *sentences)) if sentences else table
