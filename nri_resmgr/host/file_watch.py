"""One file that people change, by whatever means."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, TypeAlias

from nri_resmgr.host.text_file import UnreadableFile

# Without O_NONBLOCK, opening a FIFO waits for somebody to write to it.
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

# Four times what a configuration may have in characters; the wrong file must not eat
# the memory.
MAX_SIZE: Final = 8 << 20  # bytes

# Two changes within one tick of the kernel's clock have the same time.
_TICK: Final = 50_000_000  # nanoseconds, five times the slowest kernel's

Look: TypeAlias = tuple[int, ...]
"""What tells one content from another: device, inode, size and times, or an errno."""


class WatchedFile:
    """Reads a file, and tells when it would read something else.

    Polls instead of being told: a file that is replaced by a link further up its
    path, as in a mounted ConfigMap, changes without an event of its own. A poll
    opens the file, so that lost permissions are seen, and takes some 15 us.

    Attributes:
        path: As the user named it; links are followed anew each time.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: Look | None = None

    def read(self) -> str:
        """Return the text.

        Raises:
            UnreadableFile: It is missing, not for us, not UTF-8, or too large.
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

    def look(self) -> Look:
        """Look at the file without reading it."""
        try:
            fd = os.open(self.path, _OPEN)
        except OSError as error:
            return _errno_of(error)
        try:
            return _look_at(fd)
        finally:
            os.close(fd)

    def has_changed(self) -> bool:
        """Tell whether `read` may find something else than the last time."""
        return self.look() != self._seen

    def _content(self) -> bytes:
        fd = os.open(self.path, _OPEN)
        with os.fdopen(fd, "rb") as file:
            before = _look_at(fd)
            content = file.read(MAX_SIZE + 1)
            if 0 <= time.time_ns() - before[-1] < _TICK:
                return content  # one more change now would not show: read again
            self._seen = before
            return content


def _look_at(fd: int) -> Look:
    # The time of the last change is there because a program can set the other one.
    found = os.fstat(fd)
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _errno_of(error: OSError) -> Look:
    return (error.errno or 0,)
