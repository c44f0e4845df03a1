"""Steps done one after the other, or all of them undone."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import Group, names_in, path_in, read_if_there
from nri_resmgr.host.resctrl.schemata import render_schemata

_STATUS: Final = "info/last_cmd_status"
_OK: Final = "ok"


class _Kept(msgspec.Struct, frozen=True):
    """What a group that is removed held, to make it again.

    Attributes:
        schemata: Its text.
        cpus: Its list of CPUs.
        tasks: Ids of all its threads.
        monitors: Ids of threads by the path of a monitoring group.
    """

    schemata: str
    cpus: str
    tasks: tuple[str, ...]
    monitors: Mapping[str, tuple[str, ...]]


class Transaction:
    """Changes of groups that can be undone, the last one first.

    Args:
        files: Where.
        groups: What there was before.
    """

    def __init__(self, files: ResctrlFiles, groups: Mapping[str, Group]) -> None:
        self._files = files
        self._groups = groups
        self._undo: list[tuple[str, Callable[[], None]]] = []

    def make(self, name: str) -> None:
        """Make a group.

        Raises:
            GroupRefused: The kernel refused.
        """
        files = self._files
        done(files, name, "make", name, lambda: files.mkdir(name))
        self._undo.append((name, lambda: files.rmdir(name)))

    def write(self, name: str, text: str) -> None:
        """Write a group's schemata.

        Raises:
            GroupRefused: The kernel refused.
        """
        files, path = self._files, path_in(name, "schemata")
        done(files, name, "write", path, lambda: files.write(path, text))
        if name in self._groups:
            old = render_schemata(self._groups[name].schemata)
            self._undo.append((path, lambda: files.write(path, old)))

    def remove(self, name: str) -> None:
        """Remove a group.

        Raises:
            GroupRefused: The kernel refused.
            UnreadableHostFile: It did not say what to make again.
        """
        files = self._files
        kept = _keep(files, name, self._groups[name])
        done(files, name, "remove", name, lambda: files.rmdir(name))
        self._undo.append((name, lambda: _remake(files, name, kept)))

    def undo(self) -> tuple[str, ...]:
        """Make everything as it was.

        Returns:
            The paths of what could not be.
        """
        left = []
        while self._undo:
            path, step = self._undo.pop()
            try:
                step()
            except OSError:
                left.append(f"{self._files.root}/{path}")
        return tuple(left)


def done(
    files: ResctrlFiles, name: str, what: str, path: str, step: Callable[[], None]
) -> None:
    """Do one thing, and let the error say what the kernel has to say.

    Raises:
        GroupRefused: It could not be done.

    Source:
        Linux resctrl.rst, "last_cmd_status".
    """
    try:
        step()
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


def _keep(files: ResctrlFiles, name: str, group: Group) -> _Kept:
    monitors = f"{name}/mon_groups"
    return _Kept(
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


def _remake(files: ResctrlFiles, name: str, kept: _Kept) -> None:
    files.mkdir(name)
    if kept.schemata:
        files.write(f"{name}/schemata", kept.schemata)
    if kept.cpus:
        files.write(f"{name}/cpus_list", f"{kept.cpus}\n")
    _fill(files, name, kept.tasks)
    for monitor, tasks in kept.monitors.items():
        files.mkdir(monitor)
        _fill(files, monitor, tasks)


def _fill(files: ResctrlFiles, folder: str, tasks: Iterable[str]) -> None:
    for task in tasks:
        write_task(files, folder, int(task))


def write_task(files: ResctrlFiles, folder: str, task: int) -> bool:
    """Move one thread into a group.

    Returns:
        Whether it was there to be moved; threads end when they like.

    Raises:
        OSError: The kernel refused.
    """
    try:
        files.write(path_in(folder, "tasks"), f"{task}\n")
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise
        return False
    return True
