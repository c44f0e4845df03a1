"""Files in which containers find what they have been given."""

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
_SHARED: Final = 0o022  # others may write

_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Runtimes give out 64 hexadecimal digits; whatever it is, it must stay in its folder.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)


@dataclass(eq=False)
class ResourceFileUnwritable(HostError):
    """A file that a container was to find cannot be written."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class ResourceFiles:
    """One folder per container, below ``containers`` in a folder of our own.

    Files are replaced as a whole, so a reader sees the old text or the new one.
    Folders that are links, that belong to others, or that others may write to, are
    refused.

    Args:
        run_dir: Our folder, best on a tmpfs; made where it is missing. The runtime
            must see it under the same path.
    """

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir.rstrip("/")
        self._fd = -1  # of the folder of folders, once it is trusted

    def folder_of(self, container: str) -> str:
        """Return the path of a container's folder, whether it is there or not."""
        return f"{self._run_dir}/{_CONTAINERS}/{container}"

    def make(self, container: str) -> bool:
        """Make a container's folder, or see that the one that is there is ours alone.

        Args:
            container: Its id.

        Returns:
            Whether it is new, and empty.

        Raises:
            ResourceFileUnwritable: There is none that can be written.
        """
        path = self.folder_of(container)
        if not _ID.fullmatch(container):
            raise ResourceFileUnwritable(path, "the id makes no file name")
        try:
            return self._made(container)
        except OSError as error:  # by hand: a runtime waits for this
            raise _unwritable(path, error) from error

    def write_first(self, container: str, texts: Mapping[str, str]) -> None:
        """Write files into a new folder, in which nobody can have looked for any.

        Args:
            container: Its id; `make` has just said that its folder is new.
            texts: Contents by name.

        Raises:
            ResourceFileUnwritable: They are not all written.
        """
        with _telling(self.folder_of(container)), _modes_as_given():
            parent = self._folders()
            # The folders above let nobody else put anything there.
            for name, text in texts.items():
                _write_new(f"{container}/{name}", text, parent)

    def write(self, container: str, texts: Mapping[str, str]) -> None:
        """Write files of a container.

        Args:
            container: Its id.
            texts: Contents by name.

        Raises:
            ResourceFileUnwritable: They are not all written.
        """
        if self.make(container):
            self.write_first(container, texts)
            return
        with (
            _telling(self.folder_of(container)),
            _modes_as_given(),
            _folder(container, self._folders()) as folder,
        ):
            for name, text in texts.items():
                _replace(name, text, folder)

    def present(self) -> tuple[str, ...]:
        """Return the ids of the containers that have a folder.

        Raises:
            ResourceFileUnwritable: The folder cannot be read, or is not ours.
        """
        with _telling(self.folder_of("")):
            if self._fd < 0 and not Path(self.folder_of("")).exists():
                return ()
            return _names(self._folders())

    def remove(self, containers: Collection[str]) -> None:
        """Remove the folders of containers; those without one are fine.

        Raises:
            ResourceFileUnwritable: The first one that cannot be removed.
        """
        if not containers:
            return
        with _telling(self.folder_of("")):
            parent = self._folders()
            for container in containers:
                if _ID.fullmatch(container):
                    with contextlib.suppress(FileNotFoundError):
                        _remove(container, parent)

    def close(self) -> None:
        """Let go of the folder; it is opened again where needed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _made(self, container: str) -> bool:
        if self._fd >= 0:
            try:
                return _make(container, self._fd)
            except FileNotFoundError:
                pass  # somebody removed the folder of folders
        return _make(container, self._folders())

    def _folders(self) -> int:
        if self._fd >= 0 and not os.fstat(self._fd).st_nlink:
            self.close()  # somebody removed it
        if self._fd < 0:
            Path(self._run_dir).mkdir(_FOLDER, parents=True, exist_ok=True)
            with _folder(self._run_dir) as own:
                with contextlib.suppress(FileExistsError), _modes_as_given():
                    os.mkdir(_CONTAINERS, _FOLDER, dir_fd=own)
                with _folder(_CONTAINERS, own) as found:
                    self._fd = os.dup(found)
        return self._fd


def _make(container: str, parent: int) -> bool:
    umask = os.umask(_SHARED)
    try:
        os.mkdir(container, _FOLDER, dir_fd=parent)
    except FileExistsError:
        with _folder(container, parent):
            return False
    finally:
        os.umask(umask)
    return True


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> ResourceFileUnwritable:
    why = os.strerror(error.errno) if error.errno else str(error)
    return ResourceFileUnwritable(path, why)


@contextlib.contextmanager
def _modes_as_given() -> Iterator[None]:
    """Let new files have the modes that they are given, whatever the umask is.

    It is the whole process', where no other thread makes files.
    """
    umask = os.umask(_SHARED)
    try:
        yield
    finally:
        os.umask(umask)


@contextlib.contextmanager
def _folder(name: str, parent: int | None = None) -> Iterator[int]:
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
    with os.scandir(folder) as entries:
        return tuple(sorted(entry.name for entry in entries))


def _replace(name: str, text: str, folder: int) -> None:
    new = f".{name}.new"
    try:
        _write_new(new, text, folder)
    except FileExistsError:  # of one that was killed while writing
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
    with _folder(container, parent) as folder:
        for name in _names(folder):
            os.unlink(name, dir_fd=folder)
    os.rmdir(container, dir_fd=parent)
