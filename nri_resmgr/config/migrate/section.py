"""Mappings of foreign documents, read key by key; what is not read is noted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.values.documents import JsonObject


class Note(msgspec.Struct, frozen=True):
    """A part of a foreign document that is lost or changes its meaning.

    Attributes:
        path: In the foreign document.
    """

    path: str
    why: str


class Section:
    """A mapping of a foreign document.

    Args:
        found: What the document has in this place; None for an empty mapping.
        path: Its place.
        notes: Collects the notes about this section and all in it.
        any_case: Whether the letter case of keys is free.

    Raises:
        BadSetting: *found* is not a mapping.
    """

    def __init__(
        self, found: object, path: str, notes: list[Note], *, any_case: bool = False
    ) -> None:
        if found is not None and not isinstance(found, Mapping):
            raise BadSetting(path, "expected a mapping")
        self.path = path
        self._notes = notes
        self._any_case = any_case
        self._rows = {str(key): value for key, value in (found or {}).items()}

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that were not read yet."""
        return tuple(self._rows)

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}"

    def take(self, key: str) -> object:
        """Return the value of a key, which counts as read then; None if absent."""
        if not self._any_case:
            return self._rows.pop(key, None)
        for name in self._rows:
            if name.lower() == key.lower():
                return self._rows.pop(name)
        return None

    def text(self, key: str, default: str) -> str:
        """Read text."""
        found = self.take(key)
        if found is None:
            return default
        if not isinstance(found, str):
            raise BadSetting(self.at(key), "expected text")
        return found

    def section(self, key: str, *, any_case: bool = False) -> Section:
        """Read a mapping; one that is absent is empty."""
        any_case = any_case or self._any_case
        return Section(self.take(key), self.at(key), self._notes, any_case=any_case)

    def sections(self, key: str, *, any_case: bool = False) -> list[Section]:
        """Read a list of mappings."""
        any_case = any_case or self._any_case
        found = self.take(key)
        if found is None:
            return []
        if not isinstance(found, list):
            raise BadSetting(self.at(key), "expected a list")
        return [
            Section(row, f"{self.at(key)}[{place}]", self._notes, any_case=any_case)
            for place, row in enumerate(found)
        ]

    def copy(self, names: Mapping[str, str]) -> JsonObject:
        """Return the values of some keys under their names in our documents."""
        found = {ours: self.take(theirs) for theirs, ours in names.items()}
        return {key: value for key, value in found.items() if value is not None}

    def note(self, key: str, why: str) -> None:
        """Note why the value of a key is lost, or means something else here."""
        self._notes.append(Note(self.at(key) if key else self.path, why))

    def give_up(self, key: str, why: str) -> None:
        """Take a key; where it is present, note why it has no counterpart."""
        if self.take(key) is not None:
            self.note(key, why)

    def note_rest(self, why: str) -> None:
        """Note all keys that were not read."""
        for key, value in self._rows.items():
            if value is not None:
                self.note(key, why)
        self._rows.clear()

    def take_all(self) -> JsonObject:
        """Return all that was not read, which counts as read then."""
        found, self._rows = self._rows, {}
        return found
