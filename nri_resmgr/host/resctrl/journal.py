"""Keeps the changes of resctrl that have to be undone, for the next process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, Protocol

import msgspec

from nri_resmgr.host.resctrl.schemata import parse_schemata
from nri_resmgr.host.trust import UntrustedState

_NAME: Final = "resctrl"


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

    def within(self, groups: Collection[str]) -> ResctrlRecord:
        """Return only the changes of these groups."""
        return ResctrlRecord(
            self.made.intersection(groups),
            frozenset(one for one in self.monitors if group_of(one) in groups),
            {one: text for one, text in self.originals.items() if one in groups},
        )


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the journal's file; see `ResctrlRecord`."""

    version: Literal[1]
    place: str
    made: frozenset[str]
    monitors: frozenset[str]
    originals: dict[str, str]


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
            fields = msgspec.structs.asdict(record)
            document = _Document(version=1, place=self._place, **fields)
            text = msgspec.json.encode(document, order="deterministic").decode()
            self._store.write(_NAME, f"{text}\n")
        self._record = record


def _parse(text: str, place: str) -> ResctrlRecord:
    document = msgspec.json.decode(text, type=_Document)
    if document.place != place:
        return ResctrlRecord()
    for schemata in document.originals.values():
        parse_schemata(schemata)
    return ResctrlRecord(document.made, document.monitors, document.originals)
