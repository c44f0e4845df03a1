"""Typed reading of a parsed document; every complaint says where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

_T = TypeVar("_T")

# YAML 1.1 takes the bare word for a flag.
_OFF: Final = "off"


@frozen
class Table(ByContent):
    """A mapping of a document, with its path in it. A null value is as absent."""

    path: str
    rows: Mapping[str, object]

    @classmethod
    def read(cls, document: object, *keys: str, path: str = "$") -> Table:
        """Take *document* for a mapping that has none but *keys*.

        Raises:
            BadSetting: It is no mapping, or has another key.
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
        if isinstance(found, bool) or not isinstance(found, int):
            raise BadSetting(self.at(key), f"expected a number, not {_kind(found)}")
        # What is not there need not be in range.
        if key in self.rows and not low <= found <= high:
            raise BadSetting(self.at(key), f"expected {low} to {high}, not {found}")
        return found

    def name(self, key: str) -> str:
        """Read text that has to be there."""
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
        """Return the mappings of a list that `tables` has read before."""
        found = self._read(key, list, "a list", [])
        return tuple(one for one in found if isinstance(one, Mapping))

    def open_table(self, key: str) -> Table:
        """Read a mapping whose keys are up to the author, as long as they are text."""
        found = self.rows.get(key)
        keys = found if isinstance(found, Mapping) else ()
        for one in keys:
            if not isinstance(one, str):
                path = f"{self.at(key)}.{one}"
                raise BadSetting(path, f"expected text for a key, not {_kind(one)}")
        return Table.read(found, *keys, path=self.at(key))

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Read one word out of *choices*."""
        if key not in self.rows:
            return default
        if self.rows[key] is False and _OFF in choices:
            return _OFF
        found = self.text(key, default)
        if found not in choices:
            raise BadSetting(self.at(key), _unknown("value", found, choices))
        return found

    def choices(self, key: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Read a list of words out of *choices*."""
        found = self.texts(key, ())
        for place, one in enumerate(found):
            if one not in choices:
                path = f"{self.at(key)}[{place}]"
                raise BadSetting(path, _unknown("value", one, choices))
        return found

    def amount(self, key: str) -> str | None:
        """Read what may be written as text or as a number; None where absent."""
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
    import difflib  # only a mistake pays for it

    close = difflib.get_close_matches(found.lower(), by_case, n=1)
    if close:
        return f"unknown {what}, did you mean {by_case[close[0]]}?"
    return f"unknown {what}, expected {' or '.join(known)}"
