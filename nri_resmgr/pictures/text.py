"""Texts in a picture: escaped, and folded to lines of a width."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

from nri_resmgr.values.printable import printable

LETTER: Final = 7.3
"""Pixels of a character: the font is monospaced, of 12 px, and 0.6 em wide."""


def escaped(words: str) -> str:
    """Return a text for XML; what is not printable is written as an escape.

    Some of it XML could not have even as a character reference.
    """
    return html.escape(printable(words))


def columns_of(words: str) -> int:
    """Return how many columns of a monospaced font a text takes.

    >>> columns_of("web"), columns_of("\N{CJK UNIFIED IDEOGRAPH-4E2D}")
    (3, 2)
    """
    if words.isascii():
        return len(words)
    return sum(1 + (unicodedata.east_asian_width(one) in "FW") for one in words)


def folded(words: str, columns: int) -> list[str]:
    """Fold a text to lines of at most some columns; together they are the text.

    >>> folded("shared by web and a-long-name", 12)
    ['shared by ', 'web and ', 'a-long-name']
    >>> folded("a-very-long-name", 6)
    ['a-very', '-long-', 'name']
    """
    lines = [""]
    for word in re.findall(r"\S*\s*", printable(words)):
        if columns_of(lines[-1]) + columns_of(word.rstrip()) <= columns:
            lines[-1] += word
            continue
        lines += _pieces(word, columns)
    return [line for line in lines if line] or [""]


def _pieces(word: str, columns: int) -> list[str]:
    """Cut a word where it is longer than a line."""
    pieces, piece = [], ""
    for letter in word:
        if not letter.isspace() and columns_of(piece + letter) > columns:
            pieces.append(piece)
            piece = ""
        piece += letter
    return [*pieces, piece]
