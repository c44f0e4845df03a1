"""The file of a recording: whole lines, up to a limit of bytes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.host.bounded import reason
from nri_resmgr.values import Bytes, InputError, format_bytes


@dataclass(eq=False)
class CannotRecord(InputError):
    """The file of a recording cannot be created."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"--record {self.path}: {self.why}"


@dataclass(eq=False)
class RecordingFull(Exception):
    """The file has reached its limit; its lines are complete."""

    why: str

    def __str__(self) -> str:
        return self.why


class RecordingFile:
    """A new file of at most *limit* bytes, readable for its owner only.

    An existing file is kept as ``NAME.old``: a service that restarts after a crash
    must not destroy the recording of that crash.

    Attributes:
        path: Its path.

    Raises:
        CannotRecord: It cannot be created.
    """

    def __init__(self, path: str, limit: int) -> None:
        self.path = path
        self._limit = limit
        self._size = 0
        self._is_torn = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_APPEND  # after a line that was cut off
        try:
            if Path(path).is_dir():
                raise CannotRecord(path, "it is a folder, not a file")
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, f"{path}.old")  # noqa: PTH105 - of whatever kind it is
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise CannotRecord(path, reason(error)) from None

    def write(self, text: str) -> None:
        """Append lines; they survive a crash of the process, not of the machine.

        Where that fails, none of them is in the file, or the next call removes it.

        Raises:
            OSError: They cannot be written.
            RecordingFull: They exceed the limit.
        """
        data = memoryview(text.encode())
        if self._size + len(data) > self._limit:
            limit = format_bytes(Bytes(self._limit))
            raise RecordingFull(f"it has reached --record-limit, {limit}")
        self._mend()
        done, self._is_torn = 0, True
        try:
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError:
            with contextlib.suppress(OSError):
                self._mend()
            raise
        self._is_torn = False
        self._size += len(data)

    def _mend(self) -> None:
        """Remove half a line, which would be unreadable."""
        if self._is_torn:
            os.ftruncate(self._file, self._size)
            self._is_torn = False

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
