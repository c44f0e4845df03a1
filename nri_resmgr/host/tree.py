"""Reads files of the host, wherever its root is mounted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from nri_resmgr.values import HostError

_CHUNK: Final = 1 << 16

# Errors with which the kernel says that something has no such value, now or ever.
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
    """A file is missing that every supported kernel has."""

    path: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: no such file"


@dataclass(eq=False)
class UnreadableHostFile(HostError):
    """The kernel refused to read a file."""

    path: str
    why: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: {self.why}"


@dataclass(eq=False)
class BadHostFile(HostError):
    """A file has an invalid value, or contradicts another file."""

    path: str
    why: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: {self.why}"


class Tree(Protocol):
    """Files of a host by their path there, such as ``/sys/fs/cgroup``."""

    @property
    def root(self) -> str:
        """Prefix of such a path here; empty on the host itself."""

    def read(self, path: str) -> str | None:
        """Return a file's text without surrounding blanks; None if absent.

        Raises:
            UnreadableHostFile: It is there and cannot be read.
        """

    def names(self, path: str) -> tuple[str, ...]:
        """Return the entries of a folder, sorted; none if it is absent."""

    def target(self, path: str) -> str | None:
        """Return the real path of a file or link; None if absent."""


@contextmanager
def naming_root(tree: Tree) -> Iterator[None]:
    """Make errors name files by their paths here, below the host root."""
    try:
        yield
    except (MissingHostFile, UnreadableHostFile, BadHostFile) as error:
        error.root = tree.root
        raise


class HostTree:
    """Files of a live host, or of a folder with the same layout.

    Attributes:
        root: Where the host's root is mounted, ``/`` or ``/host``.
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
        # A link out of the root leads to this machine, not to the host.
        inside = real.startswith(f"{root}/") and os.access(real, os.F_OK)
        return real.removeprefix(root) if inside else None


def _raise_unless_absent(path: str, error: OSError) -> None:
    if error.errno not in _ABSENT:
        raise UnreadableHostFile(path, os.strerror(error.errno or 0)) from error
