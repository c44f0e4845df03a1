"""A small value of a plugin in a file, which survives restarts."""

from __future__ import annotations

import os
from typing import Final, Generic, TypeVar

import msgspec

from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.host.trust import UntrustedState
from nri_resmgr.log import Logger
from nri_resmgr.values.errors import HostError

__all__ = [
    "MOST",
    "StateInUse",
    "StateUnusable",
    "Store",
    "UntrustedState",
    "state_folder",
]

log = Logger(__name__)

_T = TypeVar("_T")

MOST: Final = 4 << 20
"""Bytes of a stored value: as much as fits into a message of NRI."""

_FILE: Final = "state.json"
_FOLDERS: Final = "/var/lib/nri-plugins"
_SYSTEMD: Final = "STATE_DIRECTORY"


def state_folder(name: str) -> str:
    """Return the state folder of a plugin.

    That is ``/var/lib/nri-plugins/NAME``, or ``StateDirectory=`` of a unit of systemd.
    """
    return os.environ.get(_SYSTEMD, "").partition(":")[0] or f"{_FOLDERS}/{name}"


class Store(Generic[_T]):
    """A value in a JSON file of a private folder.

    The file is replaced as a whole, so that a process that is killed leaves the old
    value or the new one. Nothing is opened before the first use; then the folder is
    made if it is missing, and locked against other processes.

    Args:
        kind: The type of the value, anything that msgspec converts: a Struct, a
            ``dict[str, int]``.
        folder: The folder, such as `state_folder` of the plugin's name. Two stores
            cannot have the same.
    """

    def __init__(self, kind: type[_T], folder: str) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._folder = StateDir.unopened(folder)

    def load(self) -> _T | None:
        """Return the stored value; None if there is none.

        A file that is damaged, or of another type, is set aside, and that is logged.

        Raises:
            StateInUse: Another process uses the folder.
            StateUnusable: The folder or file cannot be read.
            UntrustedState: Other users could have written it.
        """
        text = self._folder.read(_FILE)
        if text is None:
            return None
        try:
            return self._decoder.decode(text.encode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError) as error:
            moved = self._folder.set_aside(_FILE)
            log.error("store.set-aside", why=str(error), moved_to=moved)
            return None

    def save(self, value: _T) -> bool:
        """Store a value; return whether the file has it.

        A failure, such as of a full disk, is logged and does not fail the request that
        is handled. Takes some 100 µs: the file is not synced to the disk.

        Raises:
            TypeError: JSON has no form for the value.
        """
        content = msgspec.json.encode(value)
        try:
            self._write(content)
        except HostError as error:
            log.error("store.failed", why=str(error))
            return False
        return True

    def close(self) -> None:
        """Release the lock; no further use is possible."""
        self._folder.close()

    def _write(self, content: bytes) -> None:
        if len(content) > MOST:
            path = f"{self._folder.path}/{_FILE}"
            why = f"the value has {len(content)} bytes, expected at most {MOST}"
            raise StateUnusable(path, why)
        self._folder.write(_FILE, content.decode())
