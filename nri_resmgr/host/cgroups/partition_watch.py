"""Notices that the kernel has changed the state of a partition."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Collection

from nri_resmgr.classes.isolation.partitions import PARTITION
from nri_resmgr.host.tree import Tree

_SHORT = 256  # more than a state with its reason


class PartitionWatch:
    """Watches files of partitions; its descriptor is readable once one has changed.

    The kernel notifies about changes that nothing has written to the file itself, such
    as a partition that becomes invalid.

    Source:
        Linux, Documentation/admin-guide/cgroup-v2.rst: "poll and inotify events are
        triggered whenever the state of cpuset.cpus.partition changes".
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._epoll = select.epoll()
        self._files: dict[str, int] = {}

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._epoll.fileno()

    def watch(self, folders: Collection[str]) -> None:
        """Watch the partitions of these cgroups, and no others."""
        for folder in self._files.keys() - set(folders):
            os.close(self._files.pop(folder))  # which also removes it from the epoll
        for folder in set(folders) - self._files.keys():
            # A cgroup may be gone by now, and files of a folder cannot be polled.
            with contextlib.suppress(OSError):
                self._add(folder)

    def clear(self) -> None:
        """Note what has changed until now."""
        for fd, _ in self._epoll.poll(0):
            try:
                os.pread(fd, _SHORT, 0)
            except OSError:  # removed: it would be readable for ever
                self._epoll.unregister(fd)

    def close(self) -> None:
        """Watch nothing any more."""
        self.watch(())
        self._epoll.close()

    def _add(self, folder: str) -> None:
        path = f"{self._tree.root}{folder}/{PARTITION}"
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(fd, _SHORT, 0)
            self._epoll.register(fd, select.EPOLLPRI)
        except OSError:
            os.close(fd)
            raise
        self._files[folder] = fd
