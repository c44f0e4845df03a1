"""Typed access to a parsed document; every error names its place.

The methods of `Table` are the words in which readers say what a key may be. The schemas
of documents are the notes of these calls (`nri_resmgr.schema.notes`), so a reader that
looks into ``rows`` itself calls `Table.raw` for that key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.values.closest import closest

_T = TypeVar("_T")

# YAML 1.1 parses the bare word as a boolean.
_OFF: Final = "off"


class Table(msgspec.Struct, frozen=True):
    """A mapping of a document, with its path. Keys with null values count as absent."""

    path: str
    rows: Mapping[str, object]

    @classmethod
    def read(cls, document: object, *keys: str, path: str = "$") -> Table:
        """Read a mapping whose only keys are *keys*.

        Raises:
            BadSetting: It is not a mapping, or has another key.
        """
        if document is None:
            document = {}
        if not isinstance(document, Mapping):
            raise BadSetting(path, f"expected a mapping, not {kind_of(document)}")
        for key in document:
            if key not in keys:
                raise BadSetting(f"{path}.{key}", unknown("key", str(key), keys))
        return cls(path, {k: v for k, v in document.items() if v is not None})

    @classmethod
    def read_any_case(cls, document: object, *keys: str, path: str = "$") -> Table:
        """Read a mapping whose only keys are *keys*, in any letter case, as Go does.

        Raises:
            BadSetting: It is not a mapping, has another key, or a duplicate one.
        """
        if not isinstance(document, Mapping):
            return cls.read(document, *keys, path=path)
        known = {key.lower(): key for key in keys}
        found: dict[object, object] = {}
        for key, value in document.items():
            name = known.get(key.lower(), key) if isinstance(key, str) else key
            if name in found:
                why = "duplicate key, in another letter case"
                raise BadSetting(f"{path}.{key}", why)
            found[name] = value
        return cls.read(found, *keys, path=path)

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}" if key else f'{self.path}.""'

    def table(self, key: str, *keys: str, any_case: bool = False) -> Table:
        """Read a mapping; one that is absent has no rows."""
        read = Table.read_any_case if any_case else Table.read
        return read(self.rows.get(key), *keys, path=self.at(key))

    def text(self, key: str, default: str = "") -> str:
        """Read text."""
        return self._read(key, str, "text", default)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Read ``true`` or ``false``."""
        return self._read(key, bool, "true or false", default)

    def texts(
        self, key: str, default: Sequence[str] = (), *, numbers: bool = False
    ) -> tuple[str, ...]:
        """Read a list of text; with *numbers*, of whole numbers as well."""
        found = self._read(key, list, "a list", list(default))
        if numbers:
            # type(), not isinstance: a boolean is an int as well, and is an error.
            found = [str(one) if type(one) is int else one for one in found]
        for place, one in enumerate(found):
            if not isinstance(one, str):
                path = f"{self.at(key)}[{place}]"
                raise BadSetting(path, f"expected text, not {kind_of(one)}")
        return tuple(found)

    def number(self, key: str, low: int, high: int, default: int) -> int:
        """Read a whole number of *low* to *high*."""
        found = self.rows.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int):  # True is an int
            raise BadSetting(self.at(key), f"expected a number, not {kind_of(found)}")
        # The default need not be in range.
        if key in self.rows and not low <= found <= high:
            raise BadSetting(self.at(key), f"expected {low} to {high}, not {found}")
        return found

    def fraction(self, key: str) -> float:
        """Read a number of 0 to 1; 0 where absent."""
        found = self.rows.get(key, 0)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not isinstance(found, int | float) or not is_number or not 0 <= found <= 1:
            raise BadSetting(self.at(key), f"expected 0 to 1, not {found!r}")
        return found

    def name(self, key: str) -> str:
        """Read text that is required and not empty."""
        if not (found := self.text(key)):
            raise BadSetting(self.at(key), "missing, expected text")
        return found

    def tables(self, key: str, *keys: str, any_case: bool = False) -> tuple[Table, ...]:
        """Read a list of mappings."""
        read = Table.read_any_case if any_case else Table.read
        found = self._read(key, list, "a list", [])
        return tuple(
            read(one, *keys, path=f"{self.at(key)}[{place}]")
            for place, one in enumerate(found)
        )

    def named(
        self, key: str, *keys: str, any_case: bool = False
    ) -> Iterator[tuple[str, Table]]:
        """Yield the mappings of a list, each with its ``name``, which is unique."""
        seen: set[str] = set()
        for row in self.tables(key, "name", *keys, any_case=any_case):
            name = row.name("name")
            if name in seen:
                raise BadSetting(row.at("name"), f"duplicate name {name!r}")
            seen.add(name)
            yield name, row

    def require(self, key: str, expected: str) -> None:
        """Raise `BadSetting` if a key is absent."""
        if key not in self.rows:
            raise BadSetting(self.at(key), f"missing, expected {expected}")

    def open_rows(self, key: str) -> tuple[Table, ...]:
        """Return the mappings of a list that `tables` has validated before."""
        found = self._read(key, list, "a list", [])
        return tuple(
            Table(f"{self.at(key)}[{place}]", one)
            for place, one in enumerate(found)
            if isinstance(one, Mapping)
        )

    def open_table(self, key: str) -> Table:
        """Read a mapping whose keys may be any text."""
        found = self.rows.get(key)
        keys = found if isinstance(found, Mapping) else ()
        for one in keys:
            if not isinstance(one, str):
                path = f"{self.at(key)}.{one}"
                raise BadSetting(path, f"expected text for a key, not {kind_of(one)}")
        return Table.read(found, *keys, path=self.at(key))

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Read one of *choices*."""
        if key not in self.rows:
            return default
        if self.rows[key] is False and _OFF in choices:
            return _OFF
        found = self.text(key, default)
        if found not in choices:
            raise BadSetting(self.at(key), unknown("value", found, choices))
        return found

    def choices(
        self, key: str, choices: Sequence[str], *, any_case: bool = False
    ) -> tuple[str, ...]:
        """Read a list of some of *choices*, which with *any_case* are lower case."""
        found = self.texts(key)
        if any_case:
            found = tuple(one.lower() for one in found)
        for place, one in enumerate(found):
            if one not in choices:
                path = f"{self.at(key)}[{place}]"
                raise BadSetting(path, unknown("value", one, choices))
        return found

    def amount(self, key: str) -> str | None:
        """Read text or a number, as text; None where absent."""
        found = self.rows.get(key)
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise BadSetting(self.at(key), f"expected text, not {kind_of(found)}")
        return str(found)

    def form(
        self, key: str, pattern: re.Pattern[str], expected: str, *, numbers: bool = True
    ) -> str:
        """Read text, or a number as text, of the form of *pattern*; empty where absent.

        Args:
            key: Of the text.
            pattern: Of the whole text. It goes into schemas as it is: with nothing that
                Go's or JavaScript's patterns lack, except named groups.
            expected: Its meaning in words, for the error.
            numbers: Whether it may be a number.
        """
        found = (self.amount(key) or "") if numbers else self.text(key)
        if found and not pattern.fullmatch(found):
            raise BadSetting(self.at(key), f"expected {expected}, not {found!r}")
        return found

    def raw(self, key: str, *types: type) -> object:
        """Return a value that the caller validates, which is of one of *types*."""
        del types  # what schemas have of it
        return self.rows.get(key)

    def _read(self, key: str, wanted: type[_T], name: str, default: _T) -> _T:
        found = self.rows.get(key, default)
        if not isinstance(found, wanted):
            raise BadSetting(self.at(key), f"expected {name}, not {kind_of(found)}")
        return found


FieldReader: TypeAlias = Callable[[Table, str, Any], object]
"""Reads a key of a table; the last argument is the value of an absent key."""

Fields: TypeAlias = Mapping[str, tuple[str, FieldReader]]
"""By key: the name of its field, and its reader."""


def read_flag(table: Table, key: str, default: bool) -> bool:  # noqa: FBT001 - called as a `FieldReader`
    """Read ``true`` or ``false``."""
    return table.flag(key, default=default)


def read_text(table: Table, key: str, default: str) -> str:
    """Read text."""
    return table.text(key, default)


def read_texts(table: Table, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list of text."""
    return table.texts(key, default)


def read_choice(*choices: str) -> FieldReader:
    """Return the reader of one of *choices*."""
    return lambda table, key, default: table.choice(key, choices, default)


def read_number(low: int, high: int) -> FieldReader:
    """Return the reader of a whole number of *low* to *high*."""
    return lambda table, key, default: table.number(key, low, high, default)


def read_fields(table: Table, fields: Fields, defaults: object) -> dict[str, Any]:
    """Read keys into the fields of a Struct; *defaults* has those of absent keys."""
    return {
        field: read(table, key, getattr(defaults, field))
        for key, (field, read) in fields.items()
    }


def kind_of(found: object) -> str:
    """Name a parsed value in an error: its text, or what it is."""
    match found:
        case bool() | int() | float() | str():
            return repr(found)
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case _:
            return f"a {type(found).__name__}"


def unknown(what: str, found: str, known: Sequence[str]) -> str:
    """Return why a key or value is not one of *known*, with the closest of these."""
    if not known:
        return f"unknown {what}, none is defined"
    by_case = {word.lower(): word for word in known}
    if close := closest(found.lower(), by_case):
        return f"unknown {what}, did you mean {by_case[close]}?"
    # An empty value means that there is none, as if the key were absent.
    return f"unknown {what}, expected {' or '.join(filter(None, known))}"
