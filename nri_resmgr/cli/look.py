"""How text looks where it is printed: the width of the terminal, and colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.cli.flags import terminal_columns

Paint: TypeAlias = Callable[[str, str], str]
"""Colours a text (the second) by the name of a style."""

# Sequences of ECMA-48: bold black on colours that any terminal has.
_OWNERS: Final = ("1;30;46", "1;30;45", "1;30;42", "1;30;43", "1;30;44", "1;30;47")
_STYLES: Final = {
    "title": "1",
    "shared": "32",
    "reserved": "33",
    "isolated": "36",
    "idle": "2",
    "high": "1;31",
    "bar": "32",
    "help": "7",
} | {f"owner {number}": code for number, code in enumerate(_OWNERS)}

OWNER_STYLES: Final = tuple(f"owner {number}" for number in range(len(_OWNERS)))
"""Styles that distinguish containers and balloons."""


def plain(_: str, text: str) -> str:
    """Return a text without colour."""
    return text


def colored(style: str, text: str) -> str:
    """Colour a text for a terminal; an empty style is none."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style else text


class Look(msgspec.Struct, frozen=True):
    """The look of a command's output.

    Attributes:
        paint: Colours parts of it.
        width: Columns of a line; 0 for no limit, as where a program reads it.
    """

    paint: Paint = plain
    width: int = 0


PLAIN: Final = Look()


def look_of_output() -> Look:
    """Return the look of standard output.

    Only a terminal has colours and a width. A variable ``NO_COLOR`` that is not empty
    switches colours off (no-color.org).
    """
    if not sys.stdout.isatty():
        return PLAIN
    paint = plain if os.environ.get("NO_COLOR") else colored
    return Look(paint, terminal_columns())
