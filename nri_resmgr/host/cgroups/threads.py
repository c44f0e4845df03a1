"""Reads the threads of cgroups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError

# Of cgroups v2 and v1.
_FILES: Final = ("cgroup.threads", "tasks")


@dataclass(eq=False)
class UnseenThreads(HostError):
    """Threads of another PID namespace cannot be moved."""

    path: str

    def __str__(self) -> str:
        return (
            f"{self.path} lists threads of another PID namespace; "
            "run with the host's (hostPID: true)"
        )


def threads_of(tree: Tree, folder: str) -> frozenset[int]:
    """Return the ids of all threads in a cgroup and in those below it.

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
