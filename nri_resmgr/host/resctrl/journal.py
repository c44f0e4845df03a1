"""Keeps the changes of resctrl that have to be undone, for the next process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from nri_resmgr.host.resctrl.schemata import parse_schemata
from nri_resmgr.host.trust import UntrustedState

_NAME: Final = "resctrl"
_VERSION: Final = 1


class TextStore(Protocol):
    """Named texts that outlive the process, such as a `StateDir`."""

    def read(self, name: str) -> str | None:
        """Return a text; None where there is none."""

    def write(self, name: str, text: str) -> None:
        """Replace a text atomically."""

    def remove(self, name: str) -> None:
        """Remove a text, if there is one."""

    def set_aside(self, name: str) -> str:
        """Rename an invalid text for inspection; return the new path."""


class ResctrlRecord(msgspec.Struct, frozen=True):
    """Changes that have to be undone.

    Attributes:
        made: Folders of groups that we created, or were about to.
        monitors: The same for monitoring groups, as ``gold/mon_groups/NAME``.
        originals: Original schemata of groups that we changed without having created
            them, by folder; empty for the root group.
    """

    made: frozenset[str] = frozenset()
    monitors: frozenset[str] = frozenset()
    originals: Mapping[str, str] = {}

    def with_monitor(self, path: str) -> ResctrlRecord:
        """Return a copy with another monitoring group."""
        return msgspec.structs.replace(self, monitors=self.monitors | {path})

    def without_monitor(self, path: str) -> ResctrlRecord:
        """Return a copy without a monitoring group."""
        return msgspec.structs.replace(self, monitors=self.monitors - {path})

    def within(self, groups: Mapping[str, object]) -> ResctrlRecord:
        """Return only the changes of groups that still exist."""
        return ResctrlRecord(
            self.made & groups.keys(),
            frozenset(one for one in self.monitors if group_of(one) in groups),
            {one: text for one, text in self.originals.items() if one in groups},
        )


def group_of(monitor: str) -> str:
    """Return the folder of the class that a monitoring group is in.

    >>> group_of("gold/mon_groups/pod1"), group_of("mon_groups/pod1")
    ('gold', '')
    """
    return monitor.rpartition("mon_groups/")[0].rstrip("/")


class Journal:
    """Keeps one `ResctrlRecord`.

    Args:
        store: Where to keep it.
        place: Where the record applies, such as boot and mount: after another boot or
            mount it is discarded.

    Attributes:
        set_aside: New path of an invalid journal; empty without one.
    """

    def __init__(self, store: TextStore, place: str) -> None:
        self._store = store
        self._place = place
        self._record: ResctrlRecord | None = None
        self.set_aside = ""

    def load(self) -> ResctrlRecord:
        """Return the record; an empty one if there is none.

        Raises:
            StateUnusable: It cannot be read.
        """
        if self._record is None:
            try:
                text = self._store.read(_NAME)
                self._record = _parse(text, self._place) if text else ResctrlRecord()
            except (ValueError, RecursionError, UntrustedState):
                self.set_aside = self._store.set_aside(_NAME)
                self._record = ResctrlRecord()
        return self._record

    def save(self, record: ResctrlRecord) -> None:
        """Replace the record; call it before the changes.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        if record == self._record:
            return
        if record == ResctrlRecord():
            self._store.remove(_NAME)
        else:
            self._store.write(_NAME, _render(record, self._place))
        self._record = record


def _render(record: ResctrlRecord, place: str) -> str:
    document = {
        "version": _VERSION,
        "place": place,
        "made": sorted(record.made),
        "monitors": sorted(record.monitors),
        "originals": dict(record.originals),
    }
    return json.dumps(document) + "\n"


def _parse(text: str, place: str) -> ResctrlRecord:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError("not a resctrl journal")
    if document.get("place") != place:
        return ResctrlRecord()
    originals = document.get("originals")
    if not isinstance(originals, dict):
        raise ValueError("no originals")  # noqa: TRY004 - a bad file, not a bug
    for schemata in _texts([*originals.values()]):
        parse_schemata(schemata)
    return ResctrlRecord(
        frozenset(_texts(document.get("made"))),
        frozenset(_texts(document.get("monitors"))),
        dict(zip(_texts([*originals]), _texts([*originals.values()]), strict=True)),
    )


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"not a list of texts: {value!r:.40}")
    return value
