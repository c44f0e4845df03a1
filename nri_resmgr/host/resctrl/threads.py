"""Reads the threads of cgroups, and moves threads to groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import path_in, reading
from nri_resmgr.host.resctrl.transaction import attempt, write_task
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError

# Of cgroups v2 and v1.
_FILES: Final = ("cgroup.threads", "tasks")

# A new thread starts in the group of its creator, so each pass finds only threads that
# were created by threads which the pass before had not reached.
_PASSES: Final = 64


@dataclass(eq=False)
class UnseenThreads(HostError):
    """Threads of another PID namespace cannot be moved."""

    path: str

    def __str__(self) -> str:
        return (
            f"{self.path} lists threads of another PID namespace; "
            "run with the host's (hostPID: true)"
        )


@dataclass(eq=False)
class TooManyForks(HostError):
    """New threads appear faster than they are moved."""

    path: str
    moved: int

    def __str__(self) -> str:
        return f"{self.path}: still new threads after {self.moved} were moved"


def threads_of(tree: Tree, folder: str) -> frozenset[int]:
    """Return the ids of all threads in a cgroup and in those below it.

    Args:
        tree: The host.
        folder: The cgroup, such as ``/sys/fs/cgroup/kubepods.slice/...``.

    Raises:
        UnreadableHostFile: A file cannot be read.
        UnseenThreads: Threads are in another PID namespace, so that their ids read 0.
    """
    found: set[int] = set()
    for one in _with_those_below(tree, folder):
        path, text = _list_in(tree, one)
        found.update(int(word) for word in text.split())
        if 0 in found:
            raise UnseenThreads(path)
    return frozenset(found)


def move_threads(
    files: ResctrlFiles, folder: str, threads: Callable[[], Collection[int]]
) -> int:
    """Move threads to a group, until there are no new ones.

    Threads that are in it already are skipped, so that they stay in a monitoring group
    of it.

    Args:
        files: The resctrl file system.
        folder: The group.
        threads: Returns the present threads.

    Returns:
        The number of moved threads.

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
            count += _moved(files, folder, task)
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


def _moved(files: ResctrlFiles, folder: str, task: int) -> bool:
    found: list[bool] = []
    attempt(
        files,
        folder,
        f"write {task} to",
        path_in(folder, "tasks"),
        lambda: found.append(write_task(files, folder, task)),
    )
    return found[0]


def _with_those_below(tree: Tree, folder: str) -> Iterator[str]:
    yield folder
    for name in tree.names(folder):
        # Entries may be files; a failed open is cheaper than a stat of each.
        if _list_in(tree, f"{folder}/{name}")[0]:
            yield from _with_those_below(tree, f"{folder}/{name}")


def _list_in(tree: Tree, folder: str) -> tuple[str, str]:
    for name in _FILES:
        text = tree.read(f"{folder}/{name}")
        if text is not None:
            return f"{folder}/{name}", text
    return "", ""
