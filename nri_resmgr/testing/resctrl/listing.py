"""Lists the folders of the simulated file system, with a reader for each file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from nri_resmgr.testing.resctrl.hardware import FEATURES
from nri_resmgr.testing.resctrl.lines import show
from nri_resmgr.testing.resctrl.state import GroupKey, State

MONITORS: Final = "mon_groups"

# Entries of a folder: the reader of a file; None for a folder.
Folder = dict[str, Callable[[], str] | None]


def folders_of(state: State, status: Callable[[], str]) -> Mapping[str, Folder]:
    """Return all folders by path; *status* reads ``info/last_cmd_status``."""
    folders: dict[str, Folder] = {}
    for name, group in state.groups.items():
        _add_group(folders, state, (name, ""))
        for monitor in group.monitors:
            _add_group(folders, state, (name, monitor))
    for path, text in state.hardware.info().items():
        _add(folders, f"info/{path}", partial(str, text))
    _add(folders, "info/last_cmd_status", status)
    return folders


def _add_group(folders: dict[str, Folder], state: State, place: GroupKey) -> None:
    name, monitor = place
    start = f"{name}/" if name else ""
    path = f"{start}{MONITORS}/{monitor}/" if monitor else start
    _add(folders, f"{path}tasks", lambda: _lines(state.members(place)))
    group = state.groups[name]
    _add(folders, f"{path}cpus_list", lambda: f"{'' if monitor else group.cpus}\n")
    if not monitor:
        _add(folders, f"{path}schemata", lambda: _schemata(state, name))
        _add(folders, f"{path}mode", lambda: f"{group.mode}\n")
    if state.hardware.rmids:
        if not monitor:
            _add_folder(folders, f"{path}{MONITORS}")
        _add_counters(folders, f"{path}mon_data", state, place)


def _add_counters(
    folders: dict[str, Folder], path: str, state: State, place: GroupKey
) -> None:
    for cache, event in itertools.product(state.hardware.domains, FEATURES):
        folder = f"{path}/mon_L3_{cache:02}"
        read = partial(_count, state, place, cache, event)
        _add(folders, f"{folder}/{event}", read)
        if state.hardware.clusters > 1:
            for cluster in range(state.hardware.clusters):
                _add(folders, f"{folder}/mon_sub_L3_{cluster:02}/{event}", read)


def _add(folders: dict[str, Folder], path: str, read: Callable[[], str]) -> None:
    folder, _, name = path.rpartition("/")
    _add_folder(folders, folder)
    folders[folder][name] = read


def _add_folder(folders: dict[str, Folder], path: str) -> None:
    if path not in folders:
        folders[path] = {}
        if path:
            parent, _, name = path.rpartition("/")
            _add_folder(folders, parent)
            folders[parent][name] = None


def _schemata(state: State, name: str) -> str:
    group = state.groups[name]
    if group.mode == "pseudo-locksetup":
        return "".join(f"{one}:uninitialized\n" for one in state.hardware.caches)
    return show(group.values, state.hardware)


def _count(state: State, place: GroupKey, cache: int, event: str) -> str:
    return f"{state.count(place, cache, event)}\n"


def _lines(tasks: list[int]) -> str:
    return "".join(f"{task}\n" for task in tasks)
