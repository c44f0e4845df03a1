"""Operations on a resctrl file system."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from nri_resmgr.host.bounded import KERNEL_FILE, read_descriptor

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CLOEXEC

# Other programs hold the lock while they set up all their groups.
_TIMEOUT: Final = 5.0  # seconds
_PAUSE: Final = 0.02  # seconds


class ResctrlFiles(Protocol):
    """A mounted resctrl file system; paths are below its root, which is ``""``.

    Every method raises `OSError` with the kernel's errno.
    """

    @property
    def root(self) -> str:
        """Mount point, for messages."""

    def read(self, path: str) -> str:
        """Return a file's text."""

    def write(self, path: str, text: str) -> None:
        """Write a text with one write: the kernel parses each as a whole command."""

    def mkdir(self, path: str) -> None:
        """Create a group."""

    def rmdir(self, path: str) -> None:
        """Remove a group; its threads move to the root group."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the entries of a folder, sorted."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder."""

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock that other programs take to change groups."""


class MountedResctrl:
    """A mounted resctrl file system."""

    def __init__(self, root: str, timeout: float = _TIMEOUT) -> None:
        self.root = root
        self._timeout = timeout

    def read(self, path: str) -> str:
        """See `ResctrlFiles.read`."""
        with _opened(self._at(path), _READ) as fd:
            text = read_descriptor(fd, KERNEL_FILE)
        return text.decode(errors="replace")

    def write(self, path: str, text: str) -> None:
        """See `ResctrlFiles.write`."""
        content = text.encode()
        with _opened(self._at(path), _WRITE) as fd:
            if os.write(fd, content) < len(content):
                # The kernel takes a page at most; a second write would be another
                # command.
                raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))

    def mkdir(self, path: str) -> None:
        """See `ResctrlFiles.mkdir`."""
        Path(self._at(path)).mkdir()

    def rmdir(self, path: str) -> None:
        """See `ResctrlFiles.rmdir`."""
        Path(self._at(path)).rmdir()

    def names(self, path: str) -> tuple[str, ...]:
        """See `ResctrlFiles.names`."""
        with os.scandir(self._at(path)) as entries:
            return tuple(sorted(entry.name for entry in entries))

    def exists(self, path: str) -> bool:
        """See `ResctrlFiles.exists`."""
        try:
            Path(self._at(path)).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock by which programs that use resctrl exclude each other.

        Raises:
            BlockingIOError: Another program holds it.

        Source:
            Linux resctrl.rst, "Locking": flock(2) on the root directory.
        """
        with _opened(self.root, _FOLDER) as fd:
            self._lock(fd)
            yield

    def _lock(self, fd: int) -> None:
        end = time.monotonic() + self._timeout
        while True:
            try:
                return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE)

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)  # also releases a lock
