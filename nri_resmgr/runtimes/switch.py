"""The keys of NRI in a runtime's configuration, and the change of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.runtimes.errors import Generated, NotEditable, NotToml
from nri_resmgr.runtimes.toml_edit import (
    Scalar,
    TablePath,
    is_value,
    parse,
    table_of,
    with_values,
)
from nri_resmgr.values.errors import InputError

MARK: Final = "# Written by `nri-resmgr enable-runtime`; `--undo` removes it.\n"

_FOREIGN_MARK: Final = re.compile(r"#\s*(.*\bDO NOT EDIT\b.*)", re.IGNORECASE)
_HEAD: Final = 10  # lines in which generated files have such a mark

# Durations of Go, without signs and without hours and units below milliseconds.
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LONGEST: Final = 600.0  # seconds


@dataclass(eq=False)
class BadDuration(InputError):
    """Text is not a duration, or too long for a plugin timeout."""

    text: str

    def __str__(self) -> str:
        return f"{self.text!r} is not a time such as 500ms, 10s or 1m30s, up to 10m"


@dataclass(eq=False)
class TimeoutsReversed(InputError):
    """A plugin would have less time to register than to answer one request."""

    registration: str
    request: str

    def __str__(self) -> str:
        return (
            f"the registration timeout ({self.registration}) must be longer than "
            f"the request timeout ({self.request})"
        )


class ConfigFile(msgspec.Struct, frozen=True):
    """A file of a runtime's configuration, with its path on the host."""

    path: str
    text: str


class FileChange(msgspec.Struct, frozen=True):
    """A change of one file.

    Attributes:
        path: The file.
        before: Its present text; None if it is missing.
        after: Its new text; None to remove it; equal to *before* for no change.
        notes: Sentences for the user of the command.
        is_edit: Whether the file is the operator's, so that a backup is kept.
    """

    path: str
    before: str | None
    after: str | None
    notes: tuple[str, ...] = ()
    is_edit: bool = False

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after


class Keys(msgspec.Struct, frozen=True):
    """A runtime's names of the table of NRI and its keys.

    Attributes:
        table: The path of the table.
        switch: The key that enables NRI, with the value that does.
        registration: The key of the registration timeout.
        request: The key of the request timeout.
        closed: The key that rejects plugins which the runtime did not launch.
    """

    table: TablePath
    switch: tuple[str, bool]
    registration: str
    request: str
    closed: str

    def wanted(self, registration: str = "", request: str = "") -> dict[str, Scalar]:
        """Return the keys to set; empty timeouts are left to the runtime.

        Raises:
            BadDuration: A timeout is not a duration.
            TimeoutsReversed: The registration timeout is not the longer one.
        """
        for text in filter(None, (registration, request)):
            seconds_of(text)
        if registration and request and seconds_of(registration) <= seconds_of(request):
            raise TimeoutsReversed(registration, request)
        times = {self.registration: registration, self.request: request}
        key, value = self.switch
        return {key: value, **{name: text for name, text in times.items() if text}}

    def notes(self, documents: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
        """Return notes about keys that stay and restrict plugins."""
        tables = [table_of(one, self.table) or {} for one in documents]
        if not any(table.get(self.closed) is True for table in tables):
            return ()
        effect = "only launched plugins are served, not a service or a pod"
        return (f"{self.closed} is set: {effect}",)

    def values_in(self, document: Mapping[str, object]) -> dict[str, Scalar]:
        """Return the values of these keys in a document, in our order."""
        content = table_of(document, self.table) or {}
        names = (self.switch[0], self.registration, self.request)
        found = {name: content[name] for name in names if name in content}
        return {k: v for k, v in found.items() if isinstance(v, bool | str)}


def seconds_of(text: str) -> float:
    """Parse a duration as Go does.

    Raises:
        BadDuration: It is not a duration between 0 and ten minutes.

    >>> seconds_of("1m30s")
    90.0
    """
    parts = _DURATION.findall(text)
    total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not (
        0 < total <= _LONGEST
    ):
        raise BadDuration(text)
    return total


def has_values(content: Mapping[str, object], wanted: Mapping[str, Scalar]) -> bool:
    """Return whether a table has all wanted values."""
    return all(is_value(content.get(key), value) for key, value in wanted.items())


def refuse_generated(file: ConfigFile) -> None:
    """Refuse a file whose first lines say that it is generated.

    Raises:
        Generated: The file is generated.
    """
    for line in file.text.splitlines()[:_HEAD]:
        if match := _FOREIGN_MARK.match(line.strip()):
            raise Generated(file.path, match[1].strip())


def is_our_edit(keys: Keys, original: ConfigFile, text: str) -> bool:
    """Return whether a text is the original with only our keys changed."""
    try:
        present = keys.values_in(parse(original.path, text))
        return with_values(original.path, original.text, keys.table, present) == text
    except (NotToml, NotEditable):
        return False


def edited(
    keys: Keys, file: ConfigFile, original: str | None, wanted: Mapping[str, Scalar]
) -> FileChange:
    """Set keys in a file.

    If our earlier edit is the only change of the file, the original is edited again,
    so that the result does not depend on the number of edits.

    Args:
        keys: The keys of the runtime.
        file: The present file.
        original: Its backup, if it exists.
        wanted: The values to set.

    Raises:
        NotToml: The file is not TOML.
        NotEditable: It is not safe to edit.
    """
    start, values = file, dict(wanted)
    if original is not None:
        kept = ConfigFile(file.path, original)
        if is_our_edit(keys, kept, file.text):
            present = keys.values_in(parse(file.path, file.text))
            start, values = kept, ordered(keys, present | values)
    after = with_values(start.path, start.text, keys.table, values)
    return FileChange(file.path, file.text, after, is_edit=True)


def ordered(keys: Keys, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return values in the order in which they are written."""
    names = (keys.switch[0], keys.registration, keys.request)
    return {name: values[name] for name in names if name in values}
