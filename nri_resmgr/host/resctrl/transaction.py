"""Changes groups step by step, and undoes all steps on request."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import (
    ResctrlGroup,
    names_in,
    path_in,
    read_if_there,
)
from nri_resmgr.host.resctrl.schemata import render_schemata

_STATUS: Final = "info/last_cmd_status"
_OK: Final = "ok"

ResultT = TypeVar("ResultT")


class _RemovedGroup(msgspec.Struct, frozen=True):
    """Content of a removed group, to create it again.

    Attributes:
        monitors: Ids of threads by path of the monitoring group.
    """

    schemata: str
    cpus: str
    tasks: tuple[str, ...]
    monitors: Mapping[str, tuple[str, ...]]


class Transaction:
    """Changes of groups that can be undone, the last one first."""

    def __init__(self, files: ResctrlFiles, groups: Mapping[str, ResctrlGroup]) -> None:
        self._files = files
        self._groups = groups
        self._undo: list[tuple[str, Callable[[], None]]] = []

    def make(self, name: str) -> None:
        """Create a group.

        Raises:
            GroupRefused: The kernel rejected it.
        """
        files = self._files
        attempt(files, name, "make", name, lambda: files.mkdir(name))
        self._undo.append((name, lambda: files.rmdir(name)))

    def write(self, name: str, text: str) -> None:
        """Write a group's schemata.

        Raises:
            GroupRefused: The kernel rejected them.
        """
        files, path = self._files, path_in(name, "schemata")
        attempt(files, name, "write", path, lambda: files.write(path, text))
        if name in self._groups:
            old = render_schemata(self._groups[name].schemata)
            self._undo.append((path, lambda: files.write(path, old)))

    def remove(self, name: str) -> None:
        """Remove a group.

        Raises:
            GroupRefused: The kernel rejected it.
            UnreadableHostFile: The content of the group cannot be saved.
        """
        files = self._files
        saved = _save(files, name, self._groups[name])
        attempt(files, name, "remove", name, lambda: files.rmdir(name))
        self._undo.append((name, lambda: _recreate(files, name, saved)))

    def undo(self) -> tuple[str, ...]:
        """Undo all changes; return the paths whose change could not be undone."""
        left = []
        while self._undo:
            path, step = self._undo.pop()
            try:
                step()
            except OSError:
                left.append(f"{self._files.root}/{path}")
        return tuple(left)


def attempt(
    files: ResctrlFiles, name: str, what: str, path: str, step: Callable[[], ResultT]
) -> ResultT:
    """Return the result of an operation; its error includes the kernel's reason.

    Raises:
        GroupRefused: It failed.

    Source:
        Linux resctrl.rst, "last_cmd_status".
    """
    try:
        return step()
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        try:
            status = files.read(_STATUS).strip()
        except OSError:
            status = ""
        if status and status != _OK:
            why = f"{status} ({why})"
        raise GroupRefused(
            name or ROOT_CLASS, f"{files.root}/{path}", what, why
        ) from error


def _save(files: ResctrlFiles, name: str, group: ResctrlGroup) -> _RemovedGroup:
    monitors = f"{name}/mon_groups"
    return _RemovedGroup(
        schemata=render_schemata(group.schemata),
        cpus=(read_if_there(files, f"{name}/cpus_list") or "").strip(),
        tasks=_tasks(files, name),
        monitors={
            f"{monitors}/{one}": _tasks(files, f"{monitors}/{one}")
            for one in names_in(files, monitors)
        },
    )


def _tasks(files: ResctrlFiles, folder: str) -> tuple[str, ...]:
    return tuple((read_if_there(files, f"{folder}/tasks") or "").split())


def _recreate(files: ResctrlFiles, name: str, saved: _RemovedGroup) -> None:
    files.mkdir(name)
    if saved.schemata:
        files.write(f"{name}/schemata", saved.schemata)
    if saved.cpus:
        files.write(f"{name}/cpus_list", f"{saved.cpus}\n")
    _fill(files, name, saved.tasks)
    for monitor, tasks in saved.monitors.items():
        files.mkdir(monitor)
        _fill(files, monitor, tasks)


def _fill(files: ResctrlFiles, folder: str, tasks: Iterable[str]) -> None:
    for task in tasks:
        write_task(files, folder, int(task))


def write_task(files: ResctrlFiles, folder: str, task: int) -> bool:
    """Move one thread to a group; return False if it has ended.

    Raises:
        OSError: The kernel rejected it.
    """
    try:
        files.write(path_in(folder, "tasks"), f"{task}\n")
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise
        return False
    return True
