"""Reads a file and detects changes of it by polling."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, TypeAlias

from nri_resmgr.host.text_file import UnreadableFile

# Without O_NONBLOCK, opening a FIFO waits for a writer.
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

# Four times what a configuration may have in characters: a wrong file, such as a
# device, must not fill the memory.
MAX_SIZE: Final = 8 << 20  # bytes

# Two changes within one tick of the kernel's clock have the same timestamp.
_TICK: Final = 50_000_000  # nanoseconds, five times the slowest kernel's

FileSignature: TypeAlias = tuple[int, ...]
"""Identifies one content of a file: device, inode, size and times, or an errno."""


class WatchedFile:
    """Reads a file, and detects when its content may have changed.

    It polls, as inotify(7) does not report all changes: a mounted ConfigMap replaces a
    link further up the file's path. A poll opens the file, so that lost permissions
    are detected, and takes some 15 us.

    Attributes:
        path: As the user named it; links are followed at each poll.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: FileSignature | None = None

    def read(self) -> str:
        """Return the text.

        Raises:
            UnreadableFile: It is missing, not readable, not UTF-8, or too large.
        """
        self._seen = None
        try:
            content = self._content()
        except OSError as error:
            self._seen = _errno_of(error)
            why = os.strerror(error.errno) if error.errno else str(error)
            raise UnreadableFile(Path(self.path), why.lower()) from None
        if len(content) > MAX_SIZE:
            why = f"more than {MAX_SIZE >> 20} MiB"
            raise UnreadableFile(Path(self.path), why)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            why = f"not UTF-8 at byte {error.start}"
            raise UnreadableFile(Path(self.path), why) from None

    def signature(self) -> FileSignature:
        """Identify the present content without reading it."""
        try:
            fd = os.open(self.path, _OPEN)
        except OSError as error:
            return _errno_of(error)
        try:
            return _signature_of(fd)
        finally:
            os.close(fd)

    def has_changed(self) -> bool:
        """Return whether `read` may return another text than the last time."""
        return self.signature() != self._seen

    def _content(self) -> bytes:
        fd = os.open(self.path, _OPEN)
        with os.fdopen(fd, "rb") as file:
            before = _signature_of(fd)
            content = file.read(MAX_SIZE + 1)
            if 0 <= time.time_ns() - before[-1] < _TICK:
                # Another change now might leave the timestamp as it is: read again.
                return content
            self._seen = before
            return content


def _signature_of(fd: int) -> FileSignature:
    # Including ctime, as programs can set mtime.
    found = os.fstat(fd)
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _errno_of(error: OSError) -> FileSignature:
    return (error.errno or 0,)
