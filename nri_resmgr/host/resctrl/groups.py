"""The groups that a resctrl file system has."""

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


class Group(msgspec.Struct, frozen=True):
    """One group that allocates.

    Attributes:
        schemata: What it has.
        mode: How it shares that with others.
    """

    schemata: Schemata
    mode: str = SHAREABLE

    @property
    def is_for_a_region(self) -> bool:
        """Whether it has to do with locked memory: nothing can run in it."""
        return self.mode.startswith("pseudo-lock")

    @property
    def has_closid(self) -> bool:
        """Whether it takes one of the hardware's classes of service."""
        return self.mode != _LOCKED  # which gave its own back

    @property
    def is_alone(self) -> bool:
        """Whether no other group may have bits of its own."""
        return self.mode in {EXCLUSIVE, _LOCKED}


def survey(files: ResctrlFiles) -> Mapping[str, Group]:
    """Return all groups by their folder; the root group's is empty.

    Raises:
        UnreadableHostFile: The kernel does not let us see them.
        BadHostFile: It says something that makes no sense.
    """
    found = {}
    for name in ("", *groups_in(files)):
        text = read_if_there(files, path_in(name, "schemata"))
        if text is not None:
            mode = read_if_there(files, path_in(name, "mode")) or SHAREABLE
            found[name] = Group(_parsed(files, name, text), mode.strip())
    return found


def groups_in(files: ResctrlFiles) -> tuple[str, ...]:
    """Return the folders of all groups but the root's.

    Raises:
        UnreadableHostFile: The kernel does not let us see them.
    """
    return tuple(
        name for name in names_in(files, "") if "tasks" in names_in(files, name)
    )


@contextlib.contextmanager
def locked(files: ResctrlFiles) -> Iterator[None]:
    """Keep other programs from changing groups.

    Raises:
        ResctrlLocked: One of them keeps us from it.
        UnreadableHostFile: The kernel says no.
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
    """Return the path of something in a group's folder, where the root's is empty."""
    return f"{folder}/{name}" if folder else name


def checked_name(name: str) -> str:
    """Return the name of a group, if a folder can have it.

    Raises:
        BadGroupName: It cannot.
    """
    if name in {"", ".", ".."} or not name.isprintable() or "/" in name:
        raise BadGroupName(name)
    if len(name.encode()) > _LONGEST:
        raise BadGroupName(name)
    return name


def read_if_there(files: ResctrlFiles, path: str) -> str | None:
    """Return a file's text; None where it is gone, as groups of others may be.

    Raises:
        UnreadableHostFile: It is there and cannot be read.
    """
    with reading(files, path):
        return files.read(path)
    return None


def names_in(files: ResctrlFiles, path: str) -> tuple[str, ...]:
    """Return what a folder holds; nothing where it is gone.

    Raises:
        UnreadableHostFile: It is there and cannot be read.
    """
    with reading(files, path):
        return files.names(path)
    return ()


@contextlib.contextmanager
def reading(files: ResctrlFiles, path: str) -> Iterator[None]:
    """Pass over what is gone, and tell what cannot be read.

    Raises:
        UnreadableHostFile: The kernel says no.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            why = os.strerror(error.errno or 0)
            raise UnreadableHostFile(f"{files.root}/{path}", why) from error


def _parsed(files: ResctrlFiles, name: str, text: str) -> Schemata:
    try:
        return parse_schemata(text)
    except ValueError as error:
        path = f"{files.root}/{path_in(name, 'schemata')}"
        raise BadHostFile(path, str(error)) from error
