"""Typed access to a parsed document; every error names its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

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
            raise BadSetting(path, f"expected a mapping, not {_kind(document)}")
        for key in document:
            if key not in keys:
                raise BadSetting(f"{path}.{key}", _unknown("key", str(key), keys))
        return cls(path, {k: v for k, v in document.items() if v is not None})

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}"

    def table(self, key: str, *keys: str) -> Table:
        """Read a mapping; one that is absent has no rows."""
        return Table.read(self.rows.get(key), *keys, path=self.at(key))

    def text(self, key: str, default: str) -> str:
        """Read text."""
        return self._read(key, str, "text", default)

    def flag(self, key: str, *, default: bool) -> bool:
        """Read ``true`` or ``false``."""
        return self._read(key, bool, "true or false", default)

    def texts(self, key: str, default: Sequence[str]) -> tuple[str, ...]:
        """Read a list of text."""
        found = self._read(key, list, "a list", list(default))
        for place, one in enumerate(found):
            if not isinstance(one, str):
                path = f"{self.at(key)}[{place}]"
                raise BadSetting(path, f"expected text, not {_kind(one)}")
        return tuple(found)

    def number(self, key: str, low: int, high: int, default: int) -> int:
        """Read a whole number of *low* to *high*."""
        found = self.rows.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int):  # True is an int
            raise BadSetting(self.at(key), f"expected a number, not {_kind(found)}")
        # The default need not be in range.
        if key in self.rows and not low <= found <= high:
            raise BadSetting(self.at(key), f"expected {low} to {high}, not {found}")
        return found

    def name(self, key: str) -> str:
        """Read text that is required and not empty."""
        if not (found := self.text(key, "")):
            raise BadSetting(self.at(key), "missing, expected text")
        return found

    def tables(self, key: str, *keys: str) -> tuple[Table, ...]:
        """Read a list of mappings."""
        found = self._read(key, list, "a list", [])
        return tuple(
            Table.read(one, *keys, path=f"{self.at(key)}[{place}]")
            for place, one in enumerate(found)
        )

    def open_rows(self, key: str) -> tuple[Mapping[str, object], ...]:
        """Return the mappings of a list that `tables` has validated before."""
        found = self._read(key, list, "a list", [])
        return tuple(one for one in found if isinstance(one, Mapping))

    def open_table(self, key: str) -> Table:
        """Read a mapping whose keys may be any text."""
        found = self.rows.get(key)
        keys = found if isinstance(found, Mapping) else ()
        for one in keys:
            if not isinstance(one, str):
                path = f"{self.at(key)}.{one}"
                raise BadSetting(path, f"expected text for a key, not {_kind(one)}")
        return Table.read(found, *keys, path=self.at(key))

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Read one of *choices*."""
        if key not in self.rows:
            return default
        if self.rows[key] is False and _OFF in choices:
            return _OFF
        found = self.text(key, default)
        if found not in choices:
            raise BadSetting(self.at(key), _unknown("value", found, choices))
        return found

    def choices(self, key: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Read a list of some of *choices*."""
        found = self.texts(key, ())
        for place, one in enumerate(found):
            if one not in choices:
                path = f"{self.at(key)}[{place}]"
                raise BadSetting(path, _unknown("value", one, choices))
        return found

    def amount(self, key: str) -> str | None:
        """Read text or a number, as text; None where absent."""
        found = self.rows.get(key)
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise BadSetting(self.at(key), f"expected text, not {_kind(found)}")
        return str(found)

    def _read(self, key: str, wanted: type[_T], name: str, default: _T) -> _T:
        found = self.rows.get(key, default)
        if not isinstance(found, wanted):
            raise BadSetting(self.at(key), f"expected {name}, not {_kind(found)}")
        return found


def _kind(found: object) -> str:
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


def _unknown(what: str, found: str, known: Sequence[str]) -> str:
    if not known:
        return f"unknown {what}, none is defined"
    by_case = {word.lower(): word for word in known}
    if close := closest(found.lower(), by_case):
        return f"unknown {what}, did you mean {by_case[close]}?"
    return f"unknown {what}, expected {' or '.join(known)}"


def read_any_case(document: object, path: str, *keys: str) -> Table:
    """Read a mapping whose only keys are *keys*, in any letter case, as Go does.

    Raises:
        BadSetting: It is not a mapping, has another key, or a duplicate one.
    """
    if not isinstance(document, Mapping):
        return Table.read(document, *keys, path=path)
    known = {key.lower(): key for key in keys}
    found: dict[object, object] = {}
    for key, value in document.items():
        name = known.get(key.lower(), key) if isinstance(key, str) else key
        if name in found:
            raise BadSetting(f"{path}.{key}", "duplicate key, in another letter case")
        found[name] = value
    return Table.read(found, *keys, path=path)
