"""The file of a recording: written line by line, whole lines only, up to a limit."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.values import InputError


@dataclass(eq=False)
class CannotRecord(InputError):
    """There can be no recording there."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"--record {self.path}: {self.why}"


@dataclass(eq=False)
class RecordingFull(Exception):
    """No more lines fit; those before are whole."""

    why: str

    def __str__(self) -> str:
        return self.why


class RecordingFile:
    """A new file, for its owner only.

    One of that name is kept as ``NAME.old``: a service that starts again after a
    crash must not destroy the recording of that crash.

    Args:
        path: Where it is.
        limit: Bytes.

    Raises:
        CannotRecord: It cannot be made.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._limit = limit
        self._size = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            if Path(path).is_dir():
                raise CannotRecord(path, "it is a folder")
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, f"{path}.old")  # noqa: PTH105 - of whatever kind it is
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CannotRecord(path, why) from None

    def write(self, text: str) -> None:
        """Append lines; what is written survives the process, not the machine.

        Raises:
            RecordingFull: The limit, or the disk, has no room for all of them.
        """
        data = memoryview(text.encode())
        if self._size + len(data) > self._limit:
            raise RecordingFull(f"it has reached its limit of {self._limit} bytes")
        done = 0
        try:
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)  # half a line helps nobody
            raise RecordingFull((error.strerror or str(error)).lower()) from None
        self._size += len(data)

    def close(self) -> None:
        """Close it."""
        os.close(self._file)
