"""State directory of the daemon, whose files outlive the process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.trust import UntrustedState, check_file, check_owner, open_error
from nri_resmgr.values import HostError

_PRIVATE: Final = 0o700
_PRIVATE_FILE: Final = 0o600

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO waits for a writer.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_LOCK_NAME: Final = "lock"
_KEPT: Final = 5  # bad files of one name


@dataclass(eq=False)
class StateInUse(HostError):
    """Another process uses the state directory."""

    path: str
    pid: str

    def __str__(self) -> str:
        user = f"process {self.pid}" if self.pid else "another process"
        return f"{self.path} is in use by {user}; stop it, or use another --state-dir"


@dataclass(eq=False)
class StateUnusable(HostError):
    """The state cannot be read or written: no space, no permission, no directory."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class StateDir:
    """Named texts in a private directory, each replaced atomically.

    Nothing is synced to the disk: texts survive the end of this process, however it
    ends. They may not survive a loss of power, but neither do containers. Readers must
    detect truncated texts.

    Make it with `open`.
    """

    def __init__(self, path: str, folder: int) -> None:
        self.path = path
        self._folder = folder
        self._lock = -1

    @classmethod
    def open(cls, path: str) -> StateDir:
        """Open the directory; a missing one is created with mode 0700.

        Raises:
            UntrustedState: It, or a file in it, is a link, belongs to another user,
                or others may write to it.
            StateUnusable: It cannot be created or opened.
        """
        path = path.rstrip("/") or "/"
        with _as_state_error(path):
            with contextlib.suppress(FileExistsError):
                _make(Path(path))
            try:
                folder = os.open(path, _FOLDER)
            except OSError as error:
                raise open_error(path, error) from None
        found = cls(path, folder)
        try:
            found._check_all()
        except HostError:
            found.close()
            raise
        return found

    def lock(self) -> None:
        """Lock out other processes until this one ends, or `close`.

        Raises:
            StateInUse: Another process has locked it.
            UntrustedState: Other users may write to the lock file.
            StateUnusable: It cannot be written.
        """
        path = self._path(_LOCK_NAME)
        with _as_state_error(path):
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
                    os.close(fd)  # removed before it was locked
                    continue
                self._lock = fd
                with contextlib.suppress(OSError):  # the lock holds on a full disk, too
                    os.ftruncate(fd, 0)
                    os.write(fd, b"%d\n" % os.getpid())

    def read(self, name: str) -> str | None:
        """Return a text; None where there is none.

        Bytes that are not UTF-8 are returned as surrogates, for the reader to reject.

        Raises:
            UntrustedState: Other users may write to the file.
            StateUnusable: It cannot be read.
        """
        with _as_state_error(self._path(name)):
            try:
                fd = self._opened(name, _READ)
            except FileNotFoundError:
                return None
            with os.fdopen(fd, "rb") as file:
                return file.read().decode("utf-8", "surrogateescape")

    def write(self, name: str, text: str) -> None:
        """Replace a text atomically.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        new = f".{name}.new"
        with _as_state_error(self._path(name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=self._folder)  # of a killed process
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
            _as_state_error(self._path(name)),
            contextlib.suppress(FileNotFoundError),
        ):
            os.unlink(name, dir_fd=self._folder)

    def set_aside(self, name: str) -> str:
        """Rename an invalid text for inspection.

        The last five of a name are kept.

        Returns:
            The new path.

        Raises:
            StateUnusable: It is still where it was.
        """
        with _as_state_error(self._path(name)):
            names = [f"{name}.bad-{number}" for number in range(1, _KEPT + 1)]
            ages = {one: self._changed(one) for one in names}
            aside = min(names, key=lambda one: ages[one])
            self._rename(name, aside)
            # Rename does not set mtime, by which the oldest is found; the kernel's own
            # timestamps would be some ms coarse.
            now = time.time_ns()
            times = (now, now)
            os.utime(aside, dir_fd=self._folder, ns=times, follow_symlinks=False)
            return self._path(aside)

    def close(self) -> None:
        """Release the lock."""
        for fd in (self._lock, self._folder):
            if fd >= 0:
                os.close(fd)
        self._lock = self._folder = -1

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _check_all(self) -> None:
        check_owner(self.path, os.fstat(self._folder))
        with _as_state_error(self.path), os.scandir(self._folder) as entries:
            for entry in entries:
                # Files of the process that holds the lock come and go.
                with contextlib.suppress(FileNotFoundError):
                    if not entry.is_dir(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        check_file(self._path(entry.name), found)

    def _opened(self, name: str, flags: int) -> int:
        path = self._path(name)
        try:
            fd = os.open(name, flags, _PRIVATE_FILE, dir_fd=self._folder)
        except OSError as error:
            raise open_error(path, error) from None
        try:
            check_file(path, os.fstat(fd))
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
def _as_state_error(path: str) -> Iterator[None]:
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
