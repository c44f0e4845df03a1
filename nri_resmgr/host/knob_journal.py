"""The values that host files had before we wrote to them, kept for who comes next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from nri_resmgr.host.knob_files import is_knob
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree
from nri_resmgr.host.trust import UntrustedState

NAME: Final = "host-changes"
"""Of the file in the state directory; there is none while nothing is changed."""

FORMAT: Final = 1

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_encode: Final = json.JSONEncoder(indent=0).encode


class KnobJournal:
    """Originals by path, in a file that outlives the process.

    A kernel that was started anew has forgotten what was written to it: originals of
    another boot are dropped.

    Args:
        state: The directory, in which nobody else works.
        boot: What names this boot of the kernel; see `boot_of`.

    Attributes:
        set_aside: The path of a journal that made no sense; empty without one.
    """

    def __init__(self, state: StateDir, boot: str) -> None:
        self._state = state
        self._boot = boot
        self.set_aside = ""

    def read(self) -> dict[str, str]:
        """Return the original of every file that is not as it was, in order.

        Raises:
            StateUnusable: The journal is there and cannot be read or set aside.
        """
        try:
            text = self._state.read(NAME)
            found = {} if text is None else _originals(text, self._boot)
        except (UntrustedState, ValueError, KeyError, TypeError):
            self.set_aside = self._state.set_aside(NAME)
            return {}
        return found

    def write(self, originals: Mapping[str, str]) -> None:
        """Replace what is kept, at once for whoever reads.

        Raises:
            StateUnusable: It cannot be written; what was kept before still is.
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
    """Return what names this boot of a host; empty where the host does not tell.

    Raises:
        UnreadableHostFile: The kernel keeps it from us.
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
