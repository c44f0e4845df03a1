"""The one door to the host's files, wherever its root is mounted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from nri_resmgr.values import HostError

_CHUNK: Final = 1 << 16

# What the kernel answers when a thing has no such value, now or ever.
_ABSENT: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENODEV,
        errno.ENXIO,
        errno.EBUSY,
        errno.EOPNOTSUPP,
    }
)


@dataclass(eq=False)
class MissingHostFile(HostError):
    """A file that every kernel of ours has is not there."""

    path: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: no such file"


@dataclass(eq=False)
class UnreadableHostFile(HostError):
    """The kernel refused to let us read a file."""

    path: str
    why: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: {self.why}"


@dataclass(eq=False)
class BadHostFile(HostError):
    """A file says something that cannot be, alone or beside another one."""

    path: str
    why: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: {self.why}"


class Tree(Protocol):
    """Files by the path that they have on the host, such as ``/sys/fs/cgroup``."""

    @property
    def root(self) -> str:
        """What stands before such a path here; nothing on the host itself."""

    def read(self, path: str) -> str | None:
        """Return a file's text without the blanks around it; None if absent.

        Raises:
            UnreadableHostFile: It is there and cannot be read.
        """

    def names(self, path: str) -> tuple[str, ...]:
        """Return what a folder holds, sorted; nothing if it is absent."""

    def target(self, path: str) -> str | None:
        """Return the real path of a file or link; None if absent."""


@contextmanager
def naming_root(tree: Tree) -> Iterator[None]:
    """Let errors name files by the paths that they have here, below a host root."""
    try:
        yield
    except (MissingHostFile, UnreadableHostFile, BadHostFile) as error:
        error.root = tree.root
        raise


class HostTree:
    """The files of a live host, or of a folder that looks like one.

    Attributes:
        root: Where the host's root is seen, ``/`` or ``/host``.
    """

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self.root = os.fspath(root).rstrip("/")

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        try:
            fd = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            _raise_unless_absent(path, error)
            return None
        try:
            text = os.read(fd, _CHUNK)
            while more := os.read(fd, _CHUNK):
                text += more
        except OSError as error:
            _raise_unless_absent(path, error)
            return None
        finally:
            os.close(fd)
        return text.decode(errors="replace").strip()

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        try:
            with os.scandir(self.root + path) as entries:
                return tuple(sorted(entry.name for entry in entries))
        except OSError as error:
            _raise_unless_absent(path, error)
            return ()

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        root = os.path.realpath(self.root or "/").rstrip("/")
        real = os.path.realpath(self.root + path)
        # A link that leaves the root leads to this machine, not to the host.
        inside = real.startswith(f"{root}/") and os.access(real, os.F_OK)
        return real.removeprefix(root) if inside else None


def _raise_unless_absent(path: str, error: OSError) -> None:
    if error.errno not in _ABSENT:
        raise UnreadableHostFile(path, os.strerror(error.errno or 0)) from error
