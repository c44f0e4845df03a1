"""A model of the kernel's rules for sets of nested cgroups."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Iterator
from typing import Final

from nri_resmgr.values import CpuSet

TOP: Final = "/sys/fs/cgroup"
CPUSETS: Final = ("cpuset.cpus", "cpuset.mems")
_EFFECTIVE: Final = ".effective"


class KernelModel:
    """Cgroups in memory, which answer to writes as a kernel does.

    Args:
        is_v2: Its version.
        sets: Text of each file of CPUs or nodes, by its path; at the top are those of
            the machine. All cgroups have processes.
        on_write: Called after each write.

    Source:
        cpuset(7), "Errors"; Linux, Documentation/admin-guide/cgroup-v2.rst, "Cpuset
        Interface Files".
    """

    root = ""

    def __init__(
        self,
        sets: dict[str, str],
        others: dict[str, str],
        *,
        is_v2: bool,
        on_write: Callable[[], None] = lambda: None,
    ) -> None:
        self.is_v2 = is_v2
        self._top = TOP if is_v2 else f"{TOP}/cpuset"
        self.sets = {path: CpuSet.parse(text) for path, text in sets.items()}
        self.others = others
        self.rejected: list[str] = []
        self.on_write = on_write

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        if path.endswith(_EFFECTIVE) and self.is_v2:
            return str(self.in_force(path.removesuffix(_EFFECTIVE)))
        found = self.sets.get(path)
        return self.others.get(path) if found is None else str(found)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        below = [
            one for one in (*self.sets, *self.others) if one.startswith(f"{path}/")
        ]
        return tuple(sorted({one[len(path) + 1 :].split("/")[0] for one in below}))

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        return path if self.names(path) or self.read(path) is not None else None

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        if path in self.sets:
            self._write_set(path, CpuSet.parse(text))
        elif path in self.others:
            self.others[path] = text
        else:
            raise OSError(errno.ENOENT, path)
        self.on_write()

    def in_force(self, path: str) -> CpuSet:
        """Return the effective set of the cgroup of a file."""
        above = _above(path)
        if not self.is_v2 or above not in self.sets:
            return self.sets[path]
        theirs = self.in_force(above)
        return self.sets[path] & theirs or theirs

    def _write_set(self, path: str, new: CpuSet) -> None:
        above = self.sets.get(_above(path))
        number = 0
        if not new <= self.sets[f"{self._top}/{posixpath.basename(path)}"]:
            number = errno.EINVAL
        elif self.sets[path] and not new:
            number = errno.ENOSPC
        elif not self.is_v2:
            if any(not self.sets[below] <= new for below in self._below(path)):
                number = errno.EBUSY
            elif above is not None and not new <= above:
                number = errno.EACCES
        if number:
            self.rejected.append(f"{path}: {new}: {errno.errorcode[number]}")
            raise OSError(number, path)
        self.sets[path] = new

    def _below(self, path: str) -> Iterator[str]:
        return (one for one in self.sets if _above(one) == path)


def _above(path: str) -> str:
    folder, name = posixpath.split(path)
    return f"{posixpath.dirname(folder)}/{name}"
