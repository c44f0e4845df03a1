"""What is asked of a runtime, and what comes of it: which file gets which text."""

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
_HEAD: Final = 10  # lines in which generated files say so

# As Go reads them, without signs and without units that nobody waits for.
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LONGEST: Final = 600.0  # seconds


@dataclass(eq=False)
class BadDuration(InputError):
    """Text is not a time that a runtime should wait for a plugin."""

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
            f"the registration timeout ({self.registration}) has to be longer than "
            f"the request timeout ({self.request})"
        )


class ConfigFile(msgspec.Struct, frozen=True):
    """A file of a runtime's configuration, by the path that it has on the host."""

    path: str
    text: str


class Change(msgspec.Struct, frozen=True):
    """What becomes of one file.

    Attributes:
        path: Which one.
        before: Its text now; None if it is missing.
        after: Its text then; None to remove it; as before to leave it.
        notes: Sentences for whoever runs the command.
        is_edit: Whether the file is somebody's, so that the original is kept.
    """

    path: str
    before: str | None
    after: str | None
    notes: tuple[str, ...] = ()
    is_edit: bool = False

    @property
    def is_none(self) -> bool:
        """Whether everything is as it should be already."""
        return self.before == self.after


class Keys(msgspec.Struct, frozen=True):
    """How a runtime spells the table of NRI and its keys.

    Attributes:
        table: Where they are.
        switch: The key that switches NRI, with the value that switches it on.
        registration: How long a plugin may take to register.
        request: How long it may take to answer.
        closed: The key that keeps plugins out which the runtime did not launch.
    """

    table: TablePath
    switch: tuple[str, bool]
    registration: str
    request: str
    closed: str

    def wanted(self, registration: str = "", request: str = "") -> dict[str, Scalar]:
        """Spell what is asked for; empty times are left to the runtime.

        Raises:
            BadDuration: A time is none.
            TimeoutsReversed: Registering may not take as long as a request.
        """
        for text in filter(None, (registration, request)):
            seconds_of(text)
        if registration and request and seconds_of(registration) <= seconds_of(request):
            raise TimeoutsReversed(registration, request)
        times = {self.registration: registration, self.request: request}
        key, value = self.switch
        return {key: value, **{name: text for name, text in times.items() if text}}

    def notes(self, documents: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
        """Say what stays as it is, and may surprise."""
        tables = [table_of(one, self.table) or {} for one in documents]
        if not any(table.get(self.closed) is True for table in tables):
            return ()
        told = "only plugins that the runtime launches are served, no service, no pod"
        return (f"{self.closed} is set: {told}",)

    def said(self, document: Mapping[str, object]) -> dict[str, Scalar]:
        """Read from a document what it says of these keys, in our order."""
        content = table_of(document, self.table) or {}
        names = (self.switch[0], self.registration, self.request)
        found = {name: content[name] for name in names if name in content}
        return {k: v for k, v in found.items() if isinstance(v, bool | str)}


def seconds_of(text: str) -> float:
    """Read a time as Go writes it.

    Raises:
        BadDuration: It is none, or not one between 0 and ten minutes.

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
    """Tell whether a table says all that is wanted."""
    return all(is_value(content.get(key), value) for key, value in wanted.items())


def refuse_generated(file: ConfigFile) -> None:
    """Refuse a file that says at its head that another program writes it.

    Raises:
        Generated: It does.
    """
    for line in file.text.splitlines()[:_HEAD]:
        if match := _FOREIGN_MARK.match(line.strip()):
            raise Generated(file.path, match[1].strip())


def is_our_edit(keys: Keys, original: ConfigFile, text: str) -> bool:
    """Tell whether a text is the original with nothing changed but our keys, by us."""
    try:
        said = keys.said(parse(original.path, text))
        return with_values(original.path, original.text, keys.table, said) == text
    except (NotToml, NotEditable):
        return False


def edited(
    keys: Keys, file: ConfigFile, original: str | None, wanted: Mapping[str, Scalar]
) -> Change:
    """Set keys in a file.

    Where an earlier edit of ours is all that was done to it, the original is edited
    again, so that it does not matter in how many steps the keys were set.

    Args:
        keys: The runtime's.
        file: As it is.
        original: What was kept of it, if there is something.
        wanted: What to set.

    Raises:
        NotToml: The file is none.
        NotEditable: It is not safe to edit.
    """
    start, values = file, dict(wanted)
    if original is not None:
        kept = ConfigFile(file.path, original)
        if is_our_edit(keys, kept, file.text):
            said = keys.said(parse(file.path, file.text))
            start, values = kept, ordered(keys, said | values)
    after = with_values(start.path, start.text, keys.table, values)
    return Change(file.path, file.text, after, is_edit=True)


def ordered(keys: Keys, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Put values into the order in which they are written."""
    names = (keys.switch[0], keys.registration, keys.request)
    return {name: values[name] for name in names if name in values}
