"""Writes the files of the spool: atomically, and only what differs."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.bounded import reason
from nri_resmgr.spool import (
    LARGEST,
    BadSpoolFile,
    SpoolFile,
    SpoolHeader,
    decode,
    encode,
)
from nri_resmgr.values import HostError

_LOCK: Final = ".agent.lock"
_FOLDER: Final = 0o755  # the daemon reads it, as another user
_FILE: Final = 0o644


@dataclass(eq=False)
class SpoolUnusable(HostError):
    """The spool folder cannot be used."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; --spool names a folder of this user"


class SpoolFolder:
    """The agent's end of the spool.

    Args:
        folder: The folder; its parent exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder if it is missing, and keep other agents out.

        Raises:
            SpoolUnusable: It cannot be made or locked, or another agent has it.
        """
        try:
            self._folder.mkdir(_FOLDER, exist_ok=True)
            lock = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise SpoolUnusable(self._folder, reason(error)) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise SpoolUnusable(self._folder, "another agent uses it") from None
        try:
            yield
        finally:
            os.close(lock)

    def read(self, name: str) -> SpoolFile | None:
        """Return a file as it was written last; None if there is none, or a bad one."""
        try:
            with (self._folder / name).open("rb") as file:
                return decode(file.read(LARGEST + 1))
        except (OSError, BadSpoolFile):
            return None

    def write(self, name: str, header: SpoolHeader, body: str) -> bool:
        """Replace a file, unless it is the same already; return whether it was not.

        Raises:
            BadSpoolFile: The document is too large.
            BadSpoolHeader: A value cannot be in the header.
            SpoolUnusable: It cannot be written.
        """
        content = encode(header, body)
        path, new = self._folder / name, self._folder / f".{name}.new"
        try:
            if self._has(path, content):
                return False
            with new.open("wb") as file:
                os.fchmod(file.fileno(), _FILE)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            raise SpoolUnusable(self._folder, reason(error)) from None
        return True

    def _has(self, path: Path, content: bytes) -> bool:
        try:
            with path.open("rb") as file:
                return file.read(len(content) + 1) == content
        except FileNotFoundError:
            return False

    def remove(self, name: str) -> bool:
        """Remove a file; return whether there was one.

        Raises:
            SpoolUnusable: It cannot be removed.
        """
        try:
            (self._folder / name).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SpoolUnusable(self._folder, reason(error)) from None
        return True
