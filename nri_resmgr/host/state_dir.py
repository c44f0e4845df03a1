"""The directory in which a daemon keeps what the next one is to know."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.trust import UntrustedState, judge, judge_file, mistrusted
from nri_resmgr.values import HostError

_PRIVATE: Final = 0o700
_PRIVATE_FILE: Final = 0o600

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO waits for somebody to write to it.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_LOCK_NAME: Final = "lock"
_KEPT: Final = 5  # files that were set aside, of one name


@dataclass(eq=False)
class StateInUse(HostError):
    """Another process works with the state."""

    path: str
    pid: str

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else "another process"
        return f"{self.path} is in use by {who}; stop it, or use another --state-dir"


@dataclass(eq=False)
class StateUnusable(HostError):
    """The state cannot be read or written: no space, no right, no directory."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class StateDir:
    """Named texts in a directory of our own, each replaced as a whole.

    Nothing is synced to the disk: what is written survives the end of this process,
    however it ends. It may not survive a loss of power, but neither do containers.
    Who reads must tell a cut text from a whole one.

    Make it with `open`.
    """

    def __init__(self, path: str, folder: int) -> None:
        self.path = path
        self._folder = folder
        self._lock = -1

    @classmethod
    def open(cls, path: str) -> StateDir:
        """Open the directory; where it is missing, make it for us alone.

        Raises:
            UntrustedState: It, or a file in it, is a link, belongs to another user,
                or others may write to it.
            StateUnusable: It cannot be made or opened.
        """
        path = path.rstrip("/") or "/"
        with _telling(path):
            with contextlib.suppress(FileExistsError):
                _make(Path(path))
            try:
                folder = os.open(path, _FOLDER)
            except OSError as error:
                raise mistrusted(path, error) from None
        found = cls(path, folder)
        try:
            found._judge_all()
        except HostError:
            found.close()
            raise
        return found

    def lock(self) -> None:
        """Keep other processes out until this one ends, or `close`.

        Raises:
            StateInUse: One works with it already.
            UntrustedState: The file for this is not ours alone.
            StateUnusable: It cannot be written.
        """
        path = self._path(_LOCK_NAME)
        with _telling(path):
            while self._lock < 0:
                fd = self._opened(_LOCK_NAME, _LOCK)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pid = os.read(fd, 32).decode("ascii", "replace").strip()
                    os.close(fd)
                    raise StateInUse(self.path, pid) from None
                except OSError:
                    os.close(fd)
                    raise
                if not os.fstat(fd).st_nlink:
                    os.close(fd)  # somebody removed it before it was locked
                    continue
                self._lock = fd
                with contextlib.suppress(OSError):  # a full disk keeps nobody out
                    os.ftruncate(fd, 0)
                    os.write(fd, b"%d\n" % os.getpid())

    def read(self, name: str) -> str | None:
        """Return a text; None where there is none.

        Bytes that are not UTF-8 come as surrogates, for the reader to refuse.

        Raises:
            UntrustedState: The file is not ours alone.
            StateUnusable: It cannot be read.
        """
        with _telling(self._path(name)):
            try:
                fd = self._opened(name, _READ)
            except FileNotFoundError:
                return None
            with os.fdopen(fd, "rb") as file:
                return file.read().decode("utf-8", "surrogateescape")

    def write(self, name: str, text: str) -> None:
        """Replace a text, at once for whoever reads.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        new = f".{name}.new"
        with _telling(self._path(name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=self._folder)  # of one that was killed
            fd = os.open(new, _NEW, _PRIVATE_FILE, dir_fd=self._folder)
            try:
                _write(fd, text.encode("utf-8", "surrogateescape"))
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(new, dir_fd=self._folder)
                raise
            finally:
                os.close(fd)
            self._rename(new, name)

    def remove(self, name: str) -> None:
        """Remove a text, if there is one.

        Raises:
            StateUnusable: It is still there.
        """
        with (
            _telling(self._path(name)),
            contextlib.suppress(FileNotFoundError),
        ):
            os.unlink(name, dir_fd=self._folder)

    def set_aside(self, name: str) -> str:
        """Put a text that makes no sense where people can look at it.

        The last five of a name are kept.

        Returns:
            The path it has now.

        Raises:
            StateUnusable: It is still where it was.
        """
        with _telling(self._path(name)):
            names = [f"{name}.bad-{number}" for number in range(1, _KEPT + 1)]
            ages = {one: self._changed(one) for one in names}
            aside = min(names, key=lambda one: ages[one])
            self._rename(name, aside)
            # When it was found to be bad; the kernel's own word is some ms coarse.
            now = time.time_ns()
            times = (now, now)
            os.utime(aside, dir_fd=self._folder, ns=times, follow_symlinks=False)
            return self._path(aside)

    def close(self) -> None:
        """Let others work with it."""
        for fd in (self._lock, self._folder):
            if fd >= 0:
                os.close(fd)
        self._lock = self._folder = -1

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _judge_all(self) -> None:
        judge(self.path, os.fstat(self._folder))
        with _telling(self.path), os.scandir(self._folder) as entries:
            for entry in entries:
                # The files of one who works here come and go.
                with contextlib.suppress(FileNotFoundError):
                    if not entry.is_dir(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        judge_file(self._path(entry.name), found)

    def _opened(self, name: str, flags: int) -> int:
        path = self._path(name)
        try:
            fd = os.open(name, flags, _PRIVATE_FILE, dir_fd=self._folder)
        except OSError as error:
            raise mistrusted(path, error) from None
        try:
            judge_file(path, os.fstat(fd))
        except UntrustedState:
            os.close(fd)
            raise
        return fd

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _changed(self, name: str) -> int:
        try:
            return os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_mtime_ns
        except FileNotFoundError:
            return -1


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise StateUnusable(path, why.lower()) from error


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(_PRIVATE)


def _write(fd: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
