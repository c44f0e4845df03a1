"""Reads files of the host, wherever its root is mounted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from nri_resmgr.host.bounded import KERNEL_FILE, KUBELET_FILE, read_whole
from nri_resmgr.host.paths import KUBELET_ROOT
from nri_resmgr.values import HostError

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
class HostFileError(HostError):
    """A file of the host cannot be used; *root* is where the host is mounted."""

    path: str
    why: str
    root: str = ""

    def __str__(self) -> str:
        return f"{self.root}{self.path}: {self.why}"


@dataclass(eq=False)
class MissingHostFile(HostFileError):
    """A file is missing that every supported kernel has."""

    why: str = "no such file"


class UnreadableHostFile(HostFileError):
    """The kernel refused to read a file."""


class BadHostFile(HostFileError):
    """A file has an invalid value, or contradicts another file."""


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
    except HostFileError as error:
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
            bound = KUBELET_FILE if path.startswith(KUBELET_ROOT) else KERNEL_FILE
            text = read_whole(partial(os.read, fd), bound)
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
        raise UnreadableHostFile(path, error.strerror or str(error)) from error
