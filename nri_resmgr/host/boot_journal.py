"""Keeps original settings of the host in the state directory until the next boot."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final, Generic, TypeVar

from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree
from nri_resmgr.host.trust import UntrustedState
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import from_plain, to_plain

_FORMAT: Final = 1
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"

OriginalsT = TypeVar("OriginalsT")


class BootJournal(Generic[OriginalsT]):
    """Original settings, in a file that exists while any setting is changed.

    Those of another boot are discarded: kernel and firmware have reset everything.

    The state directory has to be locked by this process; *boot* is from `boot_of`.

    Attributes:
        set_aside: New path of an invalid journal; empty without one.
    """

    # Of the file: its name, what it is, and the key and type of the originals.
    name: ClassVar[str]
    title: ClassVar[str]
    key: ClassVar[str]
    kind: ClassVar[Any]

    def __init__(self, state: StateDir, boot: str, empty: OriginalsT) -> None:
        self._state = state
        self._boot = boot
        self._empty = empty
        self._last: OriginalsT | None = None  # content of the file, if known
        self.set_aside = ""

    def read(self) -> OriginalsT:
        """Return the originals of all changed settings, in the order of writing.

        Raises:
            StateUnusable: The journal cannot be read or renamed.
        """
        self._last = self._empty
        try:
            if (text := self._state.read(self.name)) is not None:
                self._last = self._parse(text)
        # What a damaged text raises here: it must not keep the daemon from starting.
        except (
            UntrustedState,
            InputError,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
        ):
            self.set_aside = self._state.set_aside(self.name)
        return self._last

    def write(self, originals: OriginalsT) -> None:
        """Replace the journal atomically, if it has other originals.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        if originals == self._last:
            return
        if originals:
            document = {
                "journal": self.title,
                "format": _FORMAT,
                "boot": self._boot,
                self.key: to_plain(originals),
            }
            self._state.write(self.name, f"{json.dumps(document, indent=0)}\n")
        else:
            self._state.remove(self.name)
        self._last = originals

    def check(self, originals: OriginalsT) -> None:
        """Raise `ValueError` for originals that must not be restored."""

    def _parse(self, text: str) -> OriginalsT:
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise ValueError(document["format"])
        originals: OriginalsT = from_plain(self.kind, document[self.key])
        self.check(originals)
        return originals if document["boot"] == self._boot else self._empty


def boot_of(tree: Tree) -> str:
    """Return the id of this boot of a host; empty if the host has none.

    Raises:
        UnreadableHostFile: It cannot be read.
    """
    return tree.read(_BOOT_ID) or ""
