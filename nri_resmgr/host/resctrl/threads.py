"""Moves threads to groups of resctrl."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import path_in, reading
from nri_resmgr.host.resctrl.transaction import attempt, write_task
from nri_resmgr.values import HostError

# A new thread starts in the group of its creator, so each pass finds only threads that
# were created by threads which the pass before had not reached.
_PASSES: Final = 64


@dataclass(eq=False)
class TooManyForks(HostError):
    """New threads appear faster than they are moved."""

    path: str
    moved: int

    def __str__(self) -> str:
        return f"{self.path}: still new threads after {self.moved} were moved"


def move_threads(
    files: ResctrlFiles, folder: str, threads: Callable[[], Collection[int]]
) -> int:
    """Move threads to a group, until there are no new ones; return their number.

    Threads that are in it already are skipped, so that they stay in a monitoring group
    of it.

    Raises:
        GroupRefused: The kernel rejected a thread. Earlier ones are moved.
        UnreadableHostFile: The threads of the group cannot be read.
        TooManyForks: New threads appear faster than they are moved.
    """
    path = path_in(folder, "tasks")
    seen: set[int] = set()
    count = 0
    for _ in range(_PASSES):
        there = tasks_in(files, folder)
        new = set(threads()) - there - seen
        if not new:
            return count
        for task in sorted(new):
            step = partial(write_task, files, folder, task)
            count += attempt(files, folder, f"write {task} to", path, step)
        seen |= new
    raise TooManyForks(f"{files.root}/{path}", count)


def tasks_in(files: ResctrlFiles, folder: str) -> frozenset[int]:
    """Return the threads of a group; none if it is gone.

    Raises:
        UnreadableHostFile: The file cannot be read.
    """
    path = path_in(folder, "tasks")
    with reading(files, path):
        return frozenset(map(int, files.read(path).split()))
    return frozenset()
