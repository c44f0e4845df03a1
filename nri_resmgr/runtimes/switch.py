"""The keys of NRI in a runtime's configuration, and the change of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

import msgspec

from nri_resmgr.runtimes.errors import NotChanged, NotEditable, NotToml
from nri_resmgr.runtimes.toml_edit import (
    TablePath,
    Value,
    is_value,
    parse,
    table_of,
    value_of,
    with_values,
)
from nri_resmgr.values.errors import InputError

MARK: Final = "# Written by `nri-resmgr enable-runtime`; `--undo` removes it.\n"

_FOREIGN_MARK: Final = re.compile(r"#\s*(.*\bDO NOT EDIT\b.*)", re.IGNORECASE)
_HEAD: Final = 10  # lines in which generated files have such a mark

TOLERATED: Final = "tolerate-missing-plugins.noderesource.dev"
"""The annotation of pods that need no required plugin; deploy/kubernetes has it."""

# What NRI admits, and the API server for an annotation without a scope behind it.
_PLUGIN: Final = re.compile(r"[A-Za-z0-9_.+-]+")
_ANNOTATION: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

_IGNORED: Final = (
    "required plugins need containerd 2.2 or CRI-O 1.34; older ones ignore them and "
    "create containers without the plugin"
)

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
class BadName(InputError):
    """Text is no name of a plugin, or no key of an annotation."""

    text: str

    def __str__(self) -> str:
        return f"{self.text!r} is no name of a plugin or key of an annotation"


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
        """True if nothing changes."""
        return self.before == self.after

    @property
    def reverted(self) -> FileChange:
        """The change back."""
        return msgspec.structs.replace(self, before=self.after, after=self.before)


class Requirement(msgspec.Struct, frozen=True):
    """A plugin without which the runtime refuses to create containers.

    Attributes:
        plugin: Its name, with or without its index; empty to have pods require plugins
            by annotation only.
        annotation: The annotation of pods that are exempt; empty for the one that the
            files have, or else `TOLERATED`.
    """

    plugin: str
    annotation: str = ""


class ValidatorKeys(msgspec.Struct, frozen=True):
    """A runtime's keys of NRI's default validator, below the table of NRI."""

    switch: str
    required: str
    tolerated: str


class Keys(msgspec.Struct, frozen=True):
    """A runtime's names of the table of NRI and its keys.

    Attributes:
        switch: The key that enables NRI, with the value that does.
        closed: The key that rejects plugins which the runtime did not launch.
    """

    table: TablePath
    switch: tuple[str, bool]
    registration: str
    request: str
    closed: str
    validator: ValidatorKeys

    def wanted(
        self,
        registration: str = "",
        request: str = "",
        *,
        requirement: Requirement | None = None,
    ) -> dict[str, Value]:
        """Return the keys to set; empty timeouts are left to the runtime.

        Raises:
            BadDuration: A timeout is not a duration.
            TimeoutsReversed: The registration timeout is not the longer one.
            BadName: A name in the requirement is none.
        """
        for text in filter(None, (registration, request)):
            seconds_of(text)
        if registration and request and seconds_of(registration) <= seconds_of(request):
            raise TimeoutsReversed(registration, request)
        times = {self.registration: registration, self.request: request}
        key, value = self.switch
        wanted: dict[str, Value] = {key: value}
        wanted |= {name: text for name, text in times.items() if text}
        return wanted | (self._of_requirement(requirement) if requirement else {})

    def merged(
        self, wanted: Mapping[str, Value], documents: Iterable[Mapping[str, object]]
    ) -> dict[str, Value]:
        """Add to *wanted* what files have: other required plugins, and an annotation.

        Args:
            wanted: The result of `wanted`.
            documents: The files in the order in which they are read.
        """
        keys = self.validator
        if keys.required not in wanted:
            return dict(wanted)
        present: dict[str, Value] = {}
        for document in documents:
            present |= self.values_in(document)
        plugins = [*_texts(present.get(keys.required)), *_texts(wanted[keys.required])]
        annotation = wanted[keys.tolerated] or present.get(keys.tolerated) or TOLERATED
        values: dict[str, Value] = dict(wanted)
        values[keys.required] = [*dict.fromkeys(plugins)]
        values[keys.tolerated] = annotation
        return values

    def notes(
        self,
        documents: Iterable[Mapping[str, object]],
        wanted: Mapping[str, Value],
    ) -> tuple[str, ...]:
        """Return notes about keys that stay and restrict plugins, and on requirements.

        Args:
            documents: The files.
            wanted: The values that are set.
        """
        notes = []
        tables = [table_of(one, self.table) or {} for one in documents]
        if any(table.get(self.closed) is True for table in tables):
            effect = "only launched plugins are served, not a service or a pod"
            notes.append(f"{self.closed} is set: {effect}")
        if self.validator.switch in wanted:
            notes.append(_IGNORED)
        if annotation := wanted.get(self.validator.tolerated):
            notes.append(
                "without the plugin no container is created, those of static pods "
                f'included, but for pods with the annotation {annotation}: "true"'
            )
        return tuple(notes)

    def values_in(self, document: Mapping[str, object]) -> dict[str, Value]:
        """Return the values of these keys in a document, in our order."""
        content = table_of(document, self.table) or {}
        found = {name: value_of(content, name) for name in self._names}
        return {name: value for name, value in found.items() if _is_ours(value)}

    def ordered(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of these keys in the order in which they are written."""
        return {name: values[name] for name in self._names if name in values}

    @property
    def _names(self) -> tuple[str, ...]:
        keys = self.validator
        times = (self.registration, self.request)
        return (self.switch[0], *times, keys.switch, keys.required, keys.tolerated)

    def _of_requirement(self, requirement: Requirement) -> dict[str, Value]:
        keys = self.validator
        if not requirement.plugin:
            return {keys.switch: True}
        for text, pattern in (
            (requirement.plugin, _PLUGIN),
            (requirement.annotation or TOLERATED, _ANNOTATION),
        ):
            if not pattern.fullmatch(text):
                raise BadName(text)
        return {
            keys.switch: True,
            keys.required: [requirement.plugin],
            keys.tolerated: requirement.annotation,
        }


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


def has_values(content: Mapping[str, object], wanted: Mapping[str, Value]) -> bool:
    """Return whether a table has all wanted values."""
    return all(is_value(value_of(content, key), wanted[key]) for key in wanted)


def _is_ours(value: object) -> TypeGuard[Value]:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, bool | str)


def _texts(value: Value | None) -> list[str]:
    return value if isinstance(value, list) else []


def refuse_generated(file: ConfigFile) -> None:
    """Refuse a file whose first lines say that it is generated.

    Raises:
        NotChanged: The file is generated.
    """
    for line in file.text.splitlines()[:_HEAD]:
        if match := _FOREIGN_MARK.match(line.strip()):
            why = f"says {match[1].strip()!r}; change its source instead"
            raise NotChanged(file.path, why)


def is_our_edit(keys: Keys, original: ConfigFile, text: str) -> bool:
    """Return whether a text is the original with only our keys changed."""
    try:
        present = keys.values_in(parse(original.path, text))
        return with_values(original.path, original.text, keys.table, present) == text
    except (NotToml, NotEditable):
        return False


def edited(
    keys: Keys, file: ConfigFile, original: str | None, wanted: Mapping[str, Value]
) -> FileChange:
    """Set keys in a file.

    If our earlier edit is the only change of the file, the original is edited again,
    so that the result does not depend on the number of edits.

    Raises:
        NotToml: The file is not TOML.
        NotEditable: It is not safe to edit.
    """
    start, values = file, dict(wanted)
    if original is not None:
        kept = ConfigFile(file.path, original)
        if is_our_edit(keys, kept, file.text):
            present = keys.values_in(parse(file.path, file.text))
            start, values = kept, keys.ordered(present | values)
    after = with_values(start.path, start.text, keys.table, values)
    return FileChange(file.path, file.text, after, is_edit=True)
