"""Notices writes to the cpuset files of containers, whichever program makes them."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from nri_resmgr.host.libc import call
from nri_resmgr.host.tree import Tree

# From <sys/inotify.h>.
_MODIFY: Final = 0x2
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")  # watch, mask, cookie, length of a name

_READ: Final = 64 * 1024  # bytes: events of 4096 writes

# A cgroup that was removed.
_GONE: Final = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR})

_REMEDIES: Final = {
    errno.EMFILE: "raise fs.inotify.max_user_instances",
    errno.ENOSPC: "raise fs.inotify.max_user_watches",
}


class CpusetWatch:
    """Watches files of containers; its descriptor is readable once one was written.

    The kernel reports each write by a program, in whichever namespace and by whichever
    mount, and nothing else: neither what the kernel changes itself, nor which program
    wrote. Until then a watch costs nothing; reading the files of 500 containers
    instead, as often as each second, is half a percent of a CPU.

    Files are added by one thread at a time. All other methods are for the event loop,
    `close` and `keep_only` while nothing is added.

    Attributes:
        problem: Why some files are not watched; empty if all are.

    Source:
        Linux, fs/read_write.c: ``vfs_write`` reports writes to files of any kind. What
        inotify(7) says of pseudo-filesystems is about changes by the kernel.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._fd = -1
        self._containers: dict[int, str] = {}  # by watch
        self._watches: dict[str, tuple[int, ...]] = {}
        self.problem = ""

    def __contains__(self, container: str) -> bool:
        return container in self._watches

    def fileno(self) -> int:
        """Return the descriptor to wait for; -1 while nothing is watched."""
        return self._fd

    def add(self, container: str, paths: Iterable[str]) -> None:
        """Watch the files of a container, which are its own."""
        found: list[int] = []
        try:
            self._open()
            for path in paths:
                found.append(self._watch(path))
                self._containers[found[-1]] = container
        except OSError as error:
            self._forget(found)
            if (number := error.errno or 0) not in _GONE:
                why, remedy = os.strerror(number).lower(), _REMEDIES.get(number, "")
                self.problem = f"inotify: {why}{remedy and f' ({remedy})'}"
            return
        self.problem = ""
        self._watches[container] = tuple(found)

    def written(self) -> Collection[str]:
        """Return the containers with files that were written since the last call."""
        found: dict[str, None] = {}
        try:
            events = os.read(self._fd, _READ)
        except BlockingIOError:
            return ()
        at = 0
        while at < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size + length
            if mask & _OVERFLOW:  # others were lost
                return tuple(self._watches)
            if mask & _MODIFY and (container := self._containers.get(watch)):
                found[container] = None
        return tuple(found)

    def keep_only(self, containers: Collection[str]) -> None:
        """Watch no files of other containers any more.

        The kernel keeps a watch of a cgroup that was removed.
        """
        for key in self._watches.keys() - set(containers):
            self._forget(self._watches.pop(key))

    def close(self) -> None:
        """Watch nothing any more; `add` begins again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._containers.clear()
        self._watches.clear()

    def _open(self) -> None:
        if self._fd < 0:
            flags = os.O_NONBLOCK | os.O_CLOEXEC
            self._fd = call("inotify_init1", flags)

    def _watch(self, path: str) -> int:
        file = os.fsencode(f"{self._tree.root}{path}")
        return call("inotify_add_watch", self._fd, file, _MODIFY)

    def _forget(self, watches: Iterable[int]) -> None:
        for watch in watches:
            del self._containers[watch]
            with suppress(OSError):  # the kernel has removed it already
                call("inotify_rm_watch", self._fd, watch)
