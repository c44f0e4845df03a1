"""What we did to resctrl, kept where the next start finds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from nri_resmgr.host.resctrl.schemata import parse_schemata
from nri_resmgr.host.trust import UntrustedState

_NAME: Final = "resctrl"
_VERSION: Final = 1


class Keeper(Protocol):
    """Named texts that outlive the process, such as a `StateDir`."""

    def read(self, name: str) -> str | None:
        """Return a text; None where there is none."""

    def write(self, name: str, text: str) -> None:
        """Replace a text as a whole."""

    def remove(self, name: str) -> None:
        """Remove a text, if there is one."""

    def set_aside(self, name: str) -> str:
        """Put a text that makes no sense where people can look at it."""


class Record(msgspec.Struct, frozen=True):
    """What has to be undone.

    Attributes:
        made: Folders of groups that we made, or were about to.
        monitors: The same for monitoring groups: paths such as
            ``gold/mon_groups/NAME``.
        originals: Schemata of groups that we did not make before we changed them, by
            folder; the root group's is empty.
    """

    made: frozenset[str] = frozenset()
    monitors: frozenset[str] = frozenset()
    originals: Mapping[str, str] = {}

    def with_monitor(self, path: str) -> Record:
        """Return it with one more monitoring group."""
        return msgspec.structs.replace(self, monitors=self.monitors | {path})

    def without_monitor(self, path: str) -> Record:
        """Return it without a monitoring group."""
        return msgspec.structs.replace(self, monitors=self.monitors - {path})

    def within(self, groups: Mapping[str, object]) -> Record:
        """Return what of it there still is."""
        return Record(
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
    """Keeps one `Record`.

    Args:
        keeper: Where.
        place: What the record is good for, such as the boot and the mount: another
            boot, or another mount, has none of our changes.

    Attributes:
        set_aside: The path of one that made no sense and was put there.
    """

    def __init__(self, keeper: Keeper, place: str) -> None:
        self._keeper = keeper
        self._place = place
        self._record: Record | None = None
        self.set_aside = ""

    def load(self) -> Record:
        """Return the record; an empty one where there is none.

        Raises:
            StateUnusable: It cannot be read.
        """
        if self._record is None:
            try:
                text = self._keeper.read(_NAME)
                self._record = _parse(text, self._place) if text else Record()
            except (ValueError, RecursionError, UntrustedState):
                self.set_aside = self._keeper.set_aside(_NAME)
                self._record = Record()
        return self._record

    def save(self, record: Record) -> None:
        """Replace the record, before what it tells of is done.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        if record == self._record:
            return
        if record == Record():
            self._keeper.remove(_NAME)
        else:
            self._keeper.write(_NAME, _render(record, self._place))
        self._record = record


def _render(record: Record, place: str) -> str:
    document = {
        "version": _VERSION,
        "place": place,
        "made": sorted(record.made),
        "monitors": sorted(record.monitors),
        "originals": dict(record.originals),
    }
    return json.dumps(document) + "\n"


def _parse(text: str, place: str) -> Record:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError("not a journal of ours")
    if document.get("place") != place:
        return Record()
    originals = document.get("originals")
    if not isinstance(originals, dict):
        raise ValueError("no originals")  # noqa: TRY004 - nobody's bug: a file is bad
    for schemata in _texts([*originals.values()]):
        parse_schemata(schemata)
    return Record(
        frozenset(_texts(document.get("made"))),
        frozenset(_texts(document.get("monitors"))),
        dict(zip(_texts([*originals]), _texts([*originals.values()]), strict=True)),
    )


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"not a list of texts: {value!r:.40}")
    return value
