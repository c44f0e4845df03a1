"""A kernel with partitions for a runtime and for daemons that are killed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

import attrs

from nri_proto import nri_pb2
from nri_resmgr.host.cgroups.partitions import Added, PartitionJournal
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.testing.world import World
from nri_resmgr.values import CpuSet
from tests.host.partition_kernel import TOP, PartitionKernel


class SharedKernel(PartitionKernel):
    """A kernel for several threads, with partitions that no write may end.

    Attributes:
        kept: CPUs of these partitions, by folder.
        lost: Those of them that a write has ended or changed all the same.
    """

    def __init__(self, cpus: CpuSet, folders: Iterable[str]) -> None:
        self.lock = threading.RLock()
        self.kept: dict[str, CpuSet] = {}
        self.lost: list[str] = []
        super().__init__(cpus, folders)

    def make(self, folder: str) -> None:
        """See `PartitionKernel.make`."""
        with self.lock:
            super().make(folder)

    def remove(self, folder: str) -> None:
        """See `PartitionKernel.remove`."""
        with self.lock:
            self.kept.pop(folder, None)
            super().remove(folder)

    def effective(self, folder: str) -> CpuSet:
        """See `PartitionKernel.effective`."""
        with self.lock:
            return super().effective(folder)

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        with self.lock:
            return super().read(path)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        with self.lock:
            return super().names(path)

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        with self.lock:
            super().write(path, text)
            for folder, cpus in list(self.kept.items()):
                if not self.is_partition(folder) or self.effective(folder) != cpus:
                    self.lost.append(f"{folder}, by {text!r} to {path}")
                    del self.kept[folder]

    def is_partition(self, folder: str) -> bool:
        """Return whether a cgroup is a valid partition."""
        return self.read(f"{TOP}/{folder}/cpuset.cpus.partition") == "root"


class Killed(Exception):
    """The daemon was killed before this write."""


@attrs.define(eq=False)
class LifeTree:
    """The files of a kernel for one daemon, which may be killed between two writes.

    Attributes:
        left: Writes until it is killed; None while it is not to be.
        killed: Set when it is.
    """

    kernel: SharedKernel
    left: int | None = None
    killed: threading.Event = attrs.field(factory=threading.Event)
    root: str = ""

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        return self.kernel.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        return self.kernel.names(path)

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        return self.kernel.target(path)

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        with self.kernel.lock:
            if self.left == 0:
                self.killed.set()
                raise Killed
            if self.left is not None:
                self.left -= 1
            self.kernel.write(path, text)


class LifeJournal(PartitionJournal):
    """What a daemon has added to cgroups; the next one reads it."""

    def __init__(self, state: StateDir, life: LifeTree) -> None:
        super().__init__(state, "boot")
        self._life = life

    def write(self, originals: dict[str, Added]) -> None:
        """See `BootJournal.write`."""
        if not self._life.killed.is_set():
            super().write(originals)


class PartitionWorld(World):
    """A world that writes cgroups with the values of its updates, as a runtime does."""

    def __init__(self, kernel: SharedKernel) -> None:
        super().__init__()
        self._kernel = kernel

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """See `World.update`."""
        super().update(container_id, changes, all_fields=all_fields)
        if container := self.containers.get(container_id):
            path = f"{TOP}{container.linux.cgroups_path}/cpuset.cpus"
            with suppress(FileNotFoundError):
                self._kernel.write(path, container.linux.resources.cpu.cpus)
