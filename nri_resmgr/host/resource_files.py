"""Writes files in which containers read their allocated resources."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.values import HostError

_CONTAINERS: Final = "containers"
_READABLE: Final = 0o644
_FOLDER: Final = 0o755
_SHARED: Final = 0o022  # other users may write

_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Runtimes use 64 hexadecimal digits; any other id must not lead out of the folder.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)


@dataclass(eq=False)
class ResourceFileUnwritable(HostError):
    """A resource file of a container cannot be written."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class ResourceFiles:
    """One folder per container, below ``containers`` in a folder of the daemon.

    Files are replaced atomically. Folders that are links, that belong to other users,
    or that other users may write to, are rejected.

    Args:
        run_dir: The daemon's folder, best on a tmpfs; created if missing. It must have
            the same path for the runtime.
    """

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir.rstrip("/")
        self._fd = -1  # of the folder `containers`, once it is checked

    def folder_of(self, container: str) -> str:
        """Return the path of a container's folder, which need not exist."""
        return f"{self._run_dir}/{_CONTAINERS}/{container}"

    def prepare(self) -> None:
        """Create the folder of all containers, and open it, before one needs it.

        Raises:
            ResourceFileUnwritable: It cannot be created, or is not safe.
        """
        with _as_unwritable(self.folder_of("")):
            self._folders()

    def make(self, container: str) -> bool:
        """Create a container's folder, or check the present one; return if it is new.

        Raises:
            ResourceFileUnwritable: It cannot be created, or other users may write to
                it.
        """
        path = self.folder_of(container)
        if not _ID.fullmatch(container):
            raise ResourceFileUnwritable(path, "the id is not a valid file name")
        try:
            return self._made(container)
        except OSError as error:  # no context manager: on the path of a request
            raise _unwritable(path, error) from error

    def write_first(self, container: str, texts: Mapping[str, str]) -> None:
        """Write files to a new folder, which has no readers yet.

        `make` has just created its folder.

        Raises:
            ResourceFileUnwritable: They are not all written.
        """
        with _as_unwritable(self.folder_of(container)), _modes_as_given():
            parent = self._folders()
            # Other users cannot write to the parent, so the new folder needs no check.
            for name, text in texts.items():
                _write_new(f"{container}/{name}", text, parent)

    def write(self, container: str, texts: Mapping[str, str]) -> None:
        """Write files of a container.

        Raises:
            ResourceFileUnwritable: They are not all written.
        """
        if self.make(container):
            self.write_first(container, texts)
            return
        with (
            _as_unwritable(self.folder_of(container)),
            _modes_as_given(),
            own_folder(container, self._folders()) as folder,
        ):
            for name, text in texts.items():
                _replace(name, text, folder)

    def present(self) -> tuple[str, ...]:
        """Return the ids of the containers that have a folder.

        Raises:
            ResourceFileUnwritable: The folder cannot be read, or is not safe.
        """
        with _as_unwritable(self.folder_of("")):
            if self._fd < 0 and not Path(self.folder_of("")).exists():
                return ()
            return _names(self._folders())

    def remove(self, containers: Collection[str]) -> None:
        """Remove the folders of containers that have one.

        Raises:
            ResourceFileUnwritable: The first that cannot be removed.
        """
        if not containers:
            return
        with _as_unwritable(self.folder_of("")):
            parent = self._folders()
            for container in containers:
                if _ID.fullmatch(container):
                    with contextlib.suppress(FileNotFoundError):
                        _remove(container, parent)

    def close(self) -> None:
        """Close the folder; it is opened again when needed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _made(self, container: str) -> bool:
        if self._fd >= 0:
            try:
                return _make(container, self._fd)
            except FileNotFoundError:
                pass  # the folder was removed: create it again
        return _make(container, self._folders())

    def _folders(self) -> int:
        if self._fd >= 0 and not os.fstat(self._fd).st_nlink:
            self.close()  # it was removed
        if self._fd < 0:
            Path(self._run_dir).mkdir(_FOLDER, parents=True, exist_ok=True)
            with own_folder(self._run_dir) as own:
                with contextlib.suppress(FileExistsError), _modes_as_given():
                    os.mkdir(_CONTAINERS, _FOLDER, dir_fd=own)
                with own_folder(_CONTAINERS, own) as found:
                    self._fd = os.dup(found)
        return self._fd


def _make(container: str, parent: int) -> bool:
    umask = os.umask(_SHARED)
    try:
        os.mkdir(container, _FOLDER, dir_fd=parent)
    except FileExistsError:
        with own_folder(container, parent):
            return False
    finally:
        os.umask(umask)
    return True


@contextlib.contextmanager
def _as_unwritable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> ResourceFileUnwritable:
    why = os.strerror(error.errno) if error.errno else str(error)
    return ResourceFileUnwritable(path, why)


@contextlib.contextmanager
def _modes_as_given() -> Iterator[None]:
    """Create files with exactly the given modes.

    The umask belongs to the whole process; no other thread creates files.
    """
    umask = os.umask(_SHARED)
    try:
        yield
    finally:
        os.umask(umask)


@contextlib.contextmanager
def own_folder(name: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder to which no other user may write, until the block ends.

    Raises:
        OSError: There is none, or it is not safe.
    """
    fd = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{name} belongs to user {found.st_uid}")
        if stat.S_IMODE(found.st_mode) & _SHARED:
            raise PermissionError(f"others may write to {name}")
        yield fd
    finally:
        os.close(fd)


def _names(folder: int) -> tuple[str, ...]:
    return tuple(sorted(os.listdir(folder)))


def _replace(name: str, text: str, folder: int) -> None:
    new = f".{name}.new"
    try:
        _write_new(new, text, folder)
    except FileExistsError:  # of a process that was killed while writing
        os.unlink(new, dir_fd=folder)
        _write_new(new, text, folder)
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_new(name: str, text: str, folder: int) -> None:
    content = text.encode("ascii")
    fd = os.open(name, _NEW_FILE, _READABLE, dir_fd=folder)
    try:
        if os.write(fd, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def _remove(container: str, parent: int) -> None:
    with own_folder(container, parent) as folder:
        for name in _names(folder):
            os.unlink(name, dir_fd=folder)
    os.rmdir(container, dir_fd=parent)
