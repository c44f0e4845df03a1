"""State directory of the daemon, whose files outlive the process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.bounded import (
    STATE_FILE,
    check_size,
    read_descriptor,
    reason,
)
from nri_resmgr.host.trust import check_file, check_owner, open_error
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

    If the directory is removed or replaced, the next operation opens, or creates, the
    one at the same path, and locks it. Safe for use by several threads.

    Make it with `open`, or with `unopened`.
    """

    def __init__(self, path: str, folder: int) -> None:
        self.path = path
        self._folder = folder
        self._lock = -1
        self._is_to_be_locked = self._is_closed = False
        self._reopening = threading.Lock()

    @classmethod
    def open(cls, path: str) -> StateDir:
        """Open the directory; a missing one is created with mode 0700.

        Raises:
            UntrustedState: It, or a file in it, is a link, belongs to another user,
                or others may write to it.
            StateUnusable: It cannot be created or opened.
        """
        path = path.rstrip("/") or "/"
        found = cls(path, _open_folder(path))
        try:
            found._check_all()
        except BaseException:
            found.close()
            raise
        return found

    @classmethod
    def unopened(cls, path: str) -> StateDir:
        """Return a directory that each operation tries to open, and to lock.

        For one that cannot be used now, such as on a full disk.
        """
        found = cls(path.rstrip("/") or "/", -1)
        found._is_to_be_locked = True
        return found

    def lock(self) -> None:
        """Lock out other processes until this one ends, or `close`.

        Both the directory and a file in it are locked: the file may be removed, and
        earlier versions of this program lock nothing but the file.

        Raises:
            StateInUse: Another process has locked it.
            UntrustedState: Other users may write to the lock file.
            StateUnusable: It cannot be written.
        """
        self._is_to_be_locked = True
        with _as_state_error(self._path(_LOCK_NAME)):
            if self._lock < 0:
                self._lock_folder()
            while self._lock < 0:
                fd = self._opened(_LOCK_NAME, _LOCK)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_there = bool(os.fstat(fd).st_nlink)
                except BlockingIOError:
                    pid = _pid_in(fd)
                    os.close(fd)
                    raise StateInUse(self.path, pid) from None
                except OSError:
                    os.close(fd)
                    raise
                if not is_there:
                    os.close(fd)  # removed before it was locked
                    continue
                self._lock = fd
                with contextlib.suppress(OSError):  # the lock holds on a full disk, too
                    os.ftruncate(fd, 0)
                    os.write(fd, b"%d\n" % os.getpid())

    def was_replaced(self) -> bool:
        """Return whether the path leads to no directory, or to another one."""
        return _identity(self.path) != _identity(self._folder)

    def read(self, name: str) -> str | None:
        """Return a text; None where there is none.

        Bytes that are not UTF-8 are returned as surrogates, for the reader to reject.

        Raises:
            UntrustedState: Other users may write to the file.
            StateUnusable: It cannot be read.
        """
        with self._in_place(name):
            # An opener's descriptor is closed even if there is no memory for the file.
            try:
                file = open(name, "rb", opener=lambda *_: self._opened(name, _READ))  # noqa: SIM115 - with an opener; closed below
            except FileNotFoundError:
                return None
            with file:
                text = read_descriptor(file.fileno(), STATE_FILE)
                return text.decode("utf-8", "surrogateescape")

    def write(self, name: str, text: str) -> None:
        """Replace a text atomically.

        Raises:
            StateUnusable: It cannot be written; the old one is still there.
        """
        new = f".{name}.new"
        content = text.encode("utf-8", "surrogateescape")
        with self._in_place(name):
            check_size(len(content), STATE_FILE)  # or the next start could not read it
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=self._folder)  # of a killed process
            fd = os.open(new, _NEW, _PRIVATE_FILE, dir_fd=self._folder)
            try:
                _write(fd, content)
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
        with self._in_place(name), contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    def set_aside(self, name: str) -> str:
        """Rename an invalid text for inspection; return its new path.

        The last five of a name are kept.

        Raises:
            StateUnusable: It is still where it was.
        """
        with self._in_place(name):
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
        """Release the lock; no operation is possible afterwards."""
        self._is_closed = True
        for fd in (self._lock, self._folder):
            if fd >= 0:
                os.close(fd)
        self._lock = self._folder = -1

    @contextlib.contextmanager
    def _in_place(self, name: str) -> Iterator[None]:
        """Use the directory that is at the path now."""
        with _as_state_error(self._path(name)):
            with self._reopening:
                if self._is_closed:
                    raise OSError(errno.EBADF, os.strerror(errno.EBADF))
                if self._folder < 0 or self.was_replaced():
                    self._reopen()
            yield

    def _reopen(self) -> None:
        """Replace the descriptors by those of the directory at the path.

        Other threads may use them meanwhile: the numbers stay, and dup2(2) is atomic.
        """
        found = StateDir.open(self.path)
        try:
            if _identity(found._folder) == _identity(self._folder):  # noqa: SLF001 - of this class
                return  # the path could not be looked up for a moment
            if self._is_to_be_locked:
                found.lock()
            if self._folder < 0:
                self._folder, self._lock = found._folder, found._lock  # noqa: SLF001 - of this class
                found._folder = found._lock = -1  # noqa: SLF001 - as above
                return
            if self._lock >= 0:
                os.dup2(found._lock, self._lock, inheritable=False)  # noqa: SLF001 - of this class
            os.dup2(found._folder, self._folder, inheritable=False)  # noqa: SLF001 - as above
        finally:
            found.close()

    def _lock_folder(self) -> None:
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = ""
            with contextlib.suppress(HostError, OSError):
                fd = self._opened(_LOCK_NAME, _READ)
                pid = _pid_in(fd)
                os.close(fd)
            raise StateInUse(self.path, pid) from None
        except OSError:
            return  # a network file system may lock files only

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _check_all(self) -> None:
        with _as_state_error(self.path):
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
        except BaseException:
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
        raise StateUnusable(path, reason(error)) from error


def _open_folder(path: str) -> int:
    with _as_state_error(path):
        with contextlib.suppress(FileExistsError):
            _make(Path(path))
        try:
            return os.open(path, _FOLDER)
        except OSError as error:
            raise open_error(path, error) from None


def _identity(folder: str | int) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)  # noqa: PTH116 - also of a descriptor
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _pid_in(fd: int) -> str:
    return os.read(fd, 32).decode("ascii", "replace").strip()


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(_PRIVATE)


def _write(fd: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
