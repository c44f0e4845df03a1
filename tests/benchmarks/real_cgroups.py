"""Cgroups of this machine's kernel with a sleeping process each, as containers have."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from tests.real_host.cgroups import Cgroup
from tests.real_host.patience import wait_until
from tests.real_host.removal import remove_cgroups

_MOUNT: Final = Path("/sys/fs/cgroup")
_CONTROLLERS: Final = ("cpuset", "cpu")  # of which the daemon writes files
# If the benchmark is killed, so are they (setpriv(1)).
_SLEEP: Final = ("setpriv", "--pdeathsig", "KILL", "sleep", "infinity")


class CgroupTree:
    """Cgroups below one that is made for them; `with` removes them and their processes.

    Args:
        name: Of the topmost one, which is not there yet.

    Source:
        cgroups(7); cpuset(7): a new cpuset of version 1 has no CPUs and memory nodes.
    """

    def __init__(self, name: str) -> None:
        self.top = f"/{name}"
        self._is_unified = (_MOUNT / "cgroup.controllers").exists()
        self._cpuset = _MOUNT if self._is_unified else _MOUNT / "cpuset"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        groups = Cgroup(self.top).folders
        wait_until(lambda: remove_cgroups(groups()), f"cgroups {self.top} to go")

    def add(self, path: str) -> int:
        """Make a cgroup below `top`, by its path from the mount; return its process."""
        for hierarchy in self._hierarchies():
            folder = hierarchy
            for name in path.strip("/").split("/"):
                if self._is_unified:
                    enabled = " ".join(f"+{each}" for each in _CONTROLLERS)
                    (folder / "cgroup.subtree_control").write_text(enabled)
                folder /= name
                if not folder.exists():
                    folder.mkdir()
                    self._inherit(folder)
        process = subprocess.Popen(_SLEEP, stdin=subprocess.DEVNULL)
        self._processes[path] = process
        for hierarchy in self._hierarchies():
            procs = hierarchy / path.strip("/") / "cgroup.procs"
            procs.write_text(str(process.pid))
        return process.pid

    def end(self, path: str) -> None:
        """End the process of a cgroup, and remove the cgroup."""
        process = self._processes.pop(path)
        process.kill()
        process.wait()
        groups = Cgroup(path).folders
        wait_until(lambda: remove_cgroups(groups()), f"cgroup {path} to go")

    def cpus_file(self, path: str) -> Path:
        """Return where a cgroup's CPUs are written."""
        return self._cpuset / path.strip("/") / "cpuset.cpus"

    def bare_write(self, paths: list[str], cpus: str) -> float:
        """Write CPUs to cgroups, as little else as possible; return the seconds."""
        files = [str(self.cpus_file(path)) for path in paths]
        text = cpus.encode()
        begin = time.perf_counter()
        for file in files:
            opened = os.open(file, os.O_WRONLY)
            os.write(opened, text)
            os.close(opened)
        return time.perf_counter() - begin

    def _hierarchies(self) -> Iterator[Path]:
        if self._is_unified:
            yield _MOUNT
        else:
            yield from (_MOUNT / controller for controller in _CONTROLLERS)

    def _inherit(self, folder: Path) -> None:
        if self._is_unified or not (folder / "cpuset.cpus").exists():
            return
        for file in ("cpuset.mems", "cpuset.cpus"):
            (folder / file).write_text((folder.parent / file).read_text())
