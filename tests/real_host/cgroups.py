"""One path in the cgroup tree, whichever version the kernel mounts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import attrs

from tests.real_host.patience import wait_until

_MOUNT = Path("/sys/fs/cgroup")
_PERIOD: Final = 100_000  # microseconds, the kernel's default


@attrs.frozen
class Cgroup:
    """A cgroup as the runtime names it: ``/kubepods/burstable/podUID/ID``."""

    path: str

    def read(self, file: str) -> str:
        """Content of a control file such as ``cpuset.cpus``.

        Under version 1 the file's prefix names the controller's hierarchy.

        Source:
            cgroups(7), "Cgroups version 1" and "version 2".
        """
        if (_MOUNT / "cgroup.controllers").exists():
            top = _MOUNT
        else:
            top = _MOUNT / file.partition(".")[0]
        return (top / self.path.lstrip("/") / file).read_text().strip()

    def create(self) -> None:
        """Make it in each hierarchy, as the cgroup root that a kubelet is given."""
        unified = _MOUNT / "cgroup.controllers"
        if unified.exists():
            enabled = " ".join(f"+{name}" for name in unified.read_text().split())
            (_MOUNT / "cgroup.subtree_control").write_text(enabled)
        for top in [_MOUNT] if unified.exists() else _hierarchies():
            (top / self.path.lstrip("/")).mkdir(exist_ok=True)

    def processes(self) -> list[int]:
        """Processes in it and below it; none if it does not exist."""
        # A runtime adds them to all hierarchies of version 1.
        folder = next(self.folders(), None)
        if folder is None:
            return []
        # In a scope of systemd crun makes a cgroup of its own.
        files = sorted(folder.rglob("cgroup.procs"))
        return [int(pid) for file in files for pid in file.read_text().split()]

    def folders(self) -> Iterator[Path]:
        """Its folder in the unified hierarchy, or in each controller's."""
        yield from folders_named(self.path.lstrip("/"))


def folders_named(pattern: str) -> list[Path]:
    """Cgroups below the root, or below that of each hierarchy, by a glob pattern."""
    # Links such as "cpu" to "cpu,cpuacct" lead to the same folder.
    found = (*_MOUNT.glob(pattern), *_MOUNT.glob(f"*/{pattern}"))
    return [*dict.fromkeys(path.resolve() for path in found)]


def _hierarchies() -> list[Path]:
    # Links such as "cpu" to "cpu,cpuacct" lead to the same folder.
    return sorted({path.parent.resolve() for path in _MOUNT.glob("*/cgroup.procs")})


class CpuShare:
    """A cgroup whose processes have a part of one CPU, as on a busy node.

    Args:
        name: Of a cgroup that is not there yet; removed at the end of ``with``.
        percent: Of one CPU.

    Source:
        cgroups(7); kernel, Documentation/scheduler/sched-bwc.rst (``cpu.cfs_*``) and
        Documentation/admin-guide/cgroup-v2.rst (``cpu.max``).
    """

    def __init__(self, name: str, percent: int) -> None:
        self._is_unified = (_MOUNT / "cgroup.controllers").exists()
        top = _MOUNT if self._is_unified else _MOUNT / "cpu"
        self._top, self._folder = top, top / name
        self._percent = percent

    def __enter__(self) -> Self:
        if self._is_unified:
            (self._top / "cgroup.subtree_control").write_text("+cpu")
        self._folder.mkdir()
        self._limit(self._percent * _PERIOD // 100)
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
        for pid in self._pids():
            with suppress(OSError):  # it has ended meanwhile
                (self._top / "cgroup.procs").write_text(pid)
        wait_until(lambda: not self._pids(), f"{self._folder} to be empty")
        self._folder.rmdir()

    def add(self, pid: int) -> None:
        """Move a process into it; its children begin there."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def lift(self) -> None:
        """Remove the limit."""
        self._limit(None)

    def _limit(self, quota: int | None) -> None:
        if self._is_unified:
            limit = "max" if quota is None else str(quota)
            (self._folder / "cpu.max").write_text(f"{limit} {_PERIOD}")
        else:
            (self._folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
            limit = "-1" if quota is None else str(quota)
            (self._folder / "cpu.cfs_quota_us").write_text(limit)

    def _pids(self) -> list[str]:
        return (self._folder / "cgroup.procs").read_text().split()
