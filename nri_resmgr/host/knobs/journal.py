"""Keeps the original values of changed host files for the next process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nri_resmgr.host.knobs.files import is_knob
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree
from nri_resmgr.host.trust import UntrustedState

NAME: Final = "host-changes"
"""File in the state directory; it exists while anything is changed."""

FORMAT: Final = 1

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_encode: Final = json.JSONEncoder(indent=0).encode


class KnobJournal:
    """Original values by path, in a file that outlives the process.

    Originals of another boot are discarded: the kernel has reset all files.

    Args:
        state: The state directory, locked by this process.
        boot: Id of this boot of the kernel; see `boot_of`.

    Attributes:
        set_aside: New path of an invalid journal; empty without one.
    """

    def __init__(self, state: StateDir, boot: str) -> None:
        self._state = state
        self._boot = boot
        self.set_aside = ""

    def read(self) -> dict[str, str]:
        """Return the originals of all changed files, in the order of first change.

        Raises:
            StateUnusable: The journal cannot be read or renamed.
        """
        try:
            text = self._state.read(NAME)
            found = {} if text is None else _originals(text, self._boot)
        except (UntrustedState, ValueError, KeyError, TypeError):
            self.set_aside = self._state.set_aside(NAME)
            return {}
        return found

    def write(self, originals: Mapping[str, str]) -> None:
        """Replace the journal atomically.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        if not originals:
            self._state.remove(NAME)
            return
        document = {
            "journal": "nri-resmgr host changes",
            "format": FORMAT,
            "boot": self._boot,
            "originals": dict(originals),
        }
        self._state.write(NAME, f"{_encode(document)}\n")


def boot_of(tree: Tree) -> str:
    """Return the id of this boot of a host; empty if the host has none.

    Raises:
        UnreadableHostFile: It cannot be read.
    """
    return tree.read(_BOOT_ID) or ""


def _originals(text: str, boot: str) -> dict[str, str]:
    document = json.loads(text)
    if document["format"] != FORMAT:
        raise ValueError(document["format"])
    found: dict[str, str] = {}
    for path, original in document["originals"].items():
        if not is_knob(path) or not isinstance(original, str):
            raise ValueError(path)
        found[path] = original
    return found if document["boot"] == boot else {}
