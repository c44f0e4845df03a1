"""Reads the groups of a resctrl file system."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.host.resctrl.errors import BadGroupName, ResctrlLocked
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.schemata import Schemata, parse_schemata
from nri_resmgr.host.tree import BadHostFile, UnreadableHostFile

SHAREABLE: Final = "shareable"
EXCLUSIVE: Final = "exclusive"
_LOCKED: Final = "pseudo-locked"

_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV})
_LONGEST: Final = 255  # NAME_MAX


class ResctrlGroup(msgspec.Struct, frozen=True):
    """One control group.

    Attributes:
        mode: ``shareable``, ``exclusive``, or of a pseudo-locked region.
    """

    schemata: Schemata
    mode: str = SHAREABLE

    @property
    def is_for_a_region(self) -> bool:
        """True if it is for pseudo-locked memory, and cannot have threads."""
        return self.mode.startswith("pseudo-lock")

    @property
    def has_closid(self) -> bool:
        """True if it uses a closid; a pseudo-locked group has freed its own."""
        return self.mode != _LOCKED

    @property
    def is_alone(self) -> bool:
        """True if no other group may share its bits."""
        return self.mode in {EXCLUSIVE, _LOCKED}


def survey(files: ResctrlFiles) -> Mapping[str, ResctrlGroup]:
    """Return all groups by folder; empty for the root group.

    Raises:
        UnreadableHostFile: A file cannot be read.
        BadHostFile: A file has an invalid value.
    """
    found = {}
    for name in ("", *groups_in(files)):
        schemata = read_schemata(files, name)
        if schemata is not None:
            mode = read_if_there(files, path_in(name, "mode")) or SHAREABLE
            found[name] = ResctrlGroup(schemata, mode.strip())
    return found


def groups_in(files: ResctrlFiles) -> tuple[str, ...]:
    """Return the folders of all groups except the root group.

    Raises:
        UnreadableHostFile: A folder cannot be read.
    """
    return tuple(
        name for name in names_in(files, "") if "tasks" in names_in(files, name)
    )


@contextlib.contextmanager
def locked(files: ResctrlFiles) -> Iterator[None]:
    """Hold the lock that other programs take to change groups.

    Raises:
        ResctrlLocked: Another program holds it.
        UnreadableHostFile: The file system cannot be locked.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked())
        except BlockingIOError as error:
            raise ResctrlLocked(files.root) from error
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise UnreadableHostFile(files.root, why) from error
        yield


def path_in(folder: str, name: str) -> str:
    """Return the path of an entry of a group's folder; empty for the root group."""
    return f"{folder}/{name}" if folder else name


def checked_name(name: str) -> str:
    """Return *name* if it is valid for a folder.

    Raises:
        BadGroupName: It is not.
    """
    if name in {"", ".", ".."} or not name.isprintable() or "/" in name:
        raise BadGroupName(name)
    if len(name.encode()) > _LONGEST:
        raise BadGroupName(name)
    return name


def read_if_there(files: ResctrlFiles, path: str) -> str | None:
    """Return a file's text; None if it is gone, removed by another program.

    Raises:
        UnreadableHostFile: It is there and cannot be read.
    """
    with reading(files, path):
        return files.read(path)
    return None


def names_in(files: ResctrlFiles, path: str) -> tuple[str, ...]:
    """Return the entries of a folder; none if it is gone.

    Raises:
        UnreadableHostFile: It is there and cannot be read.
    """
    with reading(files, path):
        return files.names(path)
    return ()


@contextlib.contextmanager
def reading(files: ResctrlFiles, path: str) -> Iterator[None]:
    """Ignore missing files; report unreadable ones.

    Raises:
        UnreadableHostFile: The kernel refused to read a file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            why = os.strerror(error.errno or 0)
            raise UnreadableHostFile(f"{files.root}/{path}", why) from error


def read_schemata(files: ResctrlFiles, group: str) -> Schemata | None:
    """Return the schemata of a group; None if it is gone.

    Raises:
        UnreadableHostFile: They cannot be read.
        BadHostFile: They are invalid.
    """
    path = path_in(group, "schemata")
    text = read_if_there(files, path)
    try:
        return None if text is None else parse_schemata(text)
    except ValueError as error:
        raise BadHostFile(f"{files.root}/{path}", str(error)) from error
