"""The folder into which an agent writes the cluster's documents, read with distrust.

The agent has no privileges, so the folder may belong to another user than the daemon:
its owner is the user who configures this node. Nothing else follows from owning it:

* No other user may write to it or to its files, or could have put it there.
* Files must be regular ones of the folder's owner. A link, also a hard one, to a file
  of another user would have the daemon read that, and quote it in an error.
* Reading is bounded, and never waits for a writer.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from nri_resmgr.host.bounded import SPOOL_FILE, read_descriptor, reason
from nri_resmgr.host.trust import UntrustedState, open_error
from nri_resmgr.values import HostError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO waits for a writer.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_OTHERS_WRITE: Final = 0o022

# Two changes within one tick of the kernel's clock have the same timestamp.
_TICK: Final = 50_000_000  # nanoseconds, five times the slowest kernel's

_Signature: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(eq=False)
class SpoolUnreadable(HostError):
    """The folder or a file in it cannot be read."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class SpoolFolder:
    """Reads files of a spool folder, and detects when they may have changed.

    Attributes:
        path: Of the folder; the last component must not be a link.
        owner: The user that it belonged to when it was last read; None if it could not
            be.
    """

    def __init__(self, path: str, names: tuple[str, ...]) -> None:
        self.path = path.rstrip("/") or "/"
        self.owner: int | None = None
        self._names = names
        self._seen: _Signature | None = None

    def has_changed(self) -> bool:
        """Return whether `read` may return something else than the last time."""
        return self._signature() != self._seen

    def forget(self) -> None:
        """Have `has_changed` return True: what was read could not be used."""
        self._seen = None

    def read(self) -> dict[str, bytes | HostError | None]:
        """Return the content of each file: None for a missing one, or why not.

        Raises:
            UntrustedState: Another user than its owner may write to the folder, or
                could have put it there.
            SpoolUnreadable: The folder cannot be read.
        """
        self._seen, self.owner = None, None
        before = self._signature()
        try:
            with _as_spool_error(self.path):
                folder = self._opened()
            try:
                owner = os.fstat(folder).st_uid
                found = {
                    name: self._content(folder, owner, name) for name in self._names
                }
            finally:
                os.close(folder)
        except HostError:
            self._seen = before
            raise
        self.owner = owner
        newest = max((one[-1] for one in before[1:]), default=0)
        if not 0 <= time.time_ns() - newest < _TICK:
            self._seen = before  # else another change may have the same timestamp
        return found

    def _opened(self) -> int:
        try:
            folder = os.open(self.path, _FOLDER)
        except OSError as error:
            raise open_error(self.path, error) from None
        try:
            found = os.fstat(folder)
            _check_mode(self.path, found)
            _check_way(os.path.dirname(os.path.abspath(self.path)), found.st_uid)  # noqa: PTH100, PTH120 - as text
        except BaseException:
            os.close(folder)
            raise
        return folder

    def _content(self, folder: int, owner: int, name: str) -> bytes | HostError | None:
        path = f"{self.path}/{name}"
        try:
            with _as_spool_error(path):
                try:
                    file = open(  # noqa: SIM115 - with an opener; closed below
                        name,
                        "rb",
                        0,
                        opener=lambda *_: os.open(name, _READ, dir_fd=folder),
                    )
                except FileNotFoundError:
                    return None
                except OSError as error:
                    raise open_error(path, error) from None
                with file:
                    found = os.fstat(file.fileno())
                    if not stat.S_ISREG(found.st_mode):
                        raise UntrustedState(
                            path, "is no regular file", f"remove {path}"
                        )
                    if found.st_uid != owner:
                        raise UntrustedState(
                            path,
                            f"belongs to user {found.st_uid}, not to {owner} as the "
                            "folder does",
                            f"remove {path}",
                        )
                    _check_mode(path, found)
                    return read_descriptor(file.fileno(), SPOOL_FILE)
        except HostError as error:
            return error

    def _signature(self) -> _Signature:
        paths = (f"{self.path}/{name}" for name in self._names)
        return (_stamp(self.path, is_folder=True), *map(_stamp, paths))


def _check_mode(path: str, found: os.stat_result) -> None:
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise UntrustedState(path, "can be written by others", f"chmod go-w {path}")


def _check_way(folder: str, owner: int) -> None:
    """Check that only root and this user can have put a folder into *folder*.

    In a folder for all, as /tmp, only an entry of root or of this user is trusted.
    """
    trusted = (0, os.geteuid())
    child, path = owner, os.path.realpath(folder)
    while True:
        found = os.stat(path)  # noqa: PTH116 - as text
        if found.st_uid not in trusted:
            raise UntrustedState(
                path,
                f"belongs to user {found.st_uid}, who could put another spool folder "
                "there",
                "use a --spool folder whose parents belong to root",
            )
        is_open = stat.S_IMODE(found.st_mode) & _OTHERS_WRITE
        if is_open and not (found.st_mode & stat.S_ISVTX and child in trusted):
            raise UntrustedState(
                path,
                "can be written by others, who could put another spool folder there",
                "use a --spool folder whose parents only root can write to",
            )
        if path == "/":
            return
        child, path = found.st_uid, os.path.dirname(path)  # noqa: PTH120 - as text


def _stamp(path: str, *, is_folder: bool = False) -> tuple[int, ...]:
    """Return device, inode, mode, owner; of a file its times and size as well."""
    try:
        found = os.lstat(path)
    except OSError as error:
        return (error.errno or 0,)
    identity = (found.st_dev, found.st_ino, found.st_mode, found.st_uid)
    if is_folder:
        return identity  # names of unfinished files come and go in it
    # Including ctime, as programs can set mtime.
    return (*identity, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextmanager
def _as_spool_error(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (
            "there is no such folder; an agent, or its set-up, makes it"
            if error.errno == errno.ENOENT
            else reason(error)
        )
        raise SpoolUnreadable(path, why) from None
