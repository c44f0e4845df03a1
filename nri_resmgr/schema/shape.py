"""The shape of a document: what each of its keys may hold."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

Default: TypeAlias = bool | int | str | tuple[str, ...] | None

ANY: Final = "*"
"""In the path of a shape, the key of a mapping whose keys may be any text."""


class Form(StrEnum):
    """Form of a value; of several ways to read a key the last one here says most."""

    ANYTHING = "anything"
    MAPPING = "mapping"
    OPEN_MAPPING = "open mapping"
    """Its keys may be any text."""
    LIST = "list"
    TEXT = "text"
    AMOUNT = "amount"
    """Text or a number."""
    FLAG = "flag"
    NUMBER = "number"
    FRACTION = "fraction"
    CHOICE = "choice"
    RAW = "raw"
    """One of `Shape.types`."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of a value of a document.

    Attributes:
        keys: Of a mapping, by key.
        required: The keys that such a mapping always has.
        any_case: Whether keys, or words of *choices*, are in any letter case.
        items: Of a list, or of an open mapping.
        low: The least number.
        high: The largest number.
        choices: Words.
        by_name: Whether it is a name that is defined elsewhere in the document.
        pattern: Of the whole text, in the syntax of Python.
        types: Types of Python, of a raw value.
        default: The value that an absent key has; None where it has none, or one that
            depends on other values.
    """

    form: Form = Form.ANYTHING
    keys: Mapping[str, Shape] = {}
    required: tuple[str, ...] = ()
    any_case: bool = False
    items: Shape | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    by_name: bool = False
    pattern: str = ""
    types: tuple[type, ...] = ()
    default: Default = None

    def at(self, *path: str) -> Shape:
        """Return the shape of a part: keys, with `ANY` for items and open keys.

        Raises:
            KeyError: There is no such part.
        """
        found = self
        for key in path:
            part = found.items if key == ANY else found.keys[key]
            if part is None:
                raise KeyError(path)
            found = part
        return found
