"""Reads a file and detects changes of it by polling."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import Final, TypeAlias

from nri_resmgr.host.bounded import DOCUMENT, read_descriptor, reason
from nri_resmgr.host.text_file import UnreadableFile

# Without O_NONBLOCK, opening a FIFO waits for a writer.
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

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
            if error.errno != errno.EFBIG:
                self._seen = _errno_of(error)
            raise UnreadableFile(Path(self.path), reason(error)) from None
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

    def forget(self) -> None:
        """Have `has_changed` return True: what was read could not be used."""
        self._seen = None

    def has_changed(self) -> bool:
        """Return whether `read` may return another text than the last time."""
        return self.signature() != self._seen

    def _content(self) -> bytes:
        # Not by a descriptor of ours: a directory would leave it open.
        with open(self.path, "rb", opener=_opened) as file:
            before = _signature_of(file.fileno())
            try:
                content = read_descriptor(file.fileno(), DOCUMENT)
            except OSError as error:
                if error.errno == errno.EFBIG:
                    self._seen = before  # the next content is waited for
                raise
            if 0 <= time.time_ns() - before[-1] < _TICK:
                # Another change now might leave the timestamp as it is: read again.
                return content
            self._seen = before
            return content


def _opened(path: str, _: int) -> int:
    return os.open(path, _OPEN)


def _signature_of(fd: int) -> FileSignature:
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        return (errno.EISDIR,)  # as `read` notes it, however its entries change
    # Including ctime, as programs can set mtime.
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _errno_of(error: OSError) -> FileSignature:
    return (error.errno or 0,)
