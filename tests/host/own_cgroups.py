"""Cgroups of a test's own in a real kernel, of whichever version it has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.real_host.patience import wait_until
from tests.real_host.runs import own_name

MOUNT: Final = Path("/sys/fs/cgroup")
IS_V2: Final = (MOUNT / "cgroup.controllers").exists()

# A hierarchy each on version 1.
_CONTROLLERS: Final = ("cpuset", "cpu", "freezer")
_SETS: Final = ("cpuset.cpus", "cpuset.mems")


class OwnCgroups:
    """Cgroups below one that this test made; with its processes they go away."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: list[Path] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def make(self, path: str = "", *, bare: bool = False) -> str:
        """Make a cgroup with CPUs and nodes of the one above, as runtimes do.

        Returns:
            Its path, as in the OCI spec. *bare* leaves its sets empty.
        """
        for folder in self._folders(path):
            if IS_V2:
                (folder.parent / "cgroup.subtree_control").write_text("+cpuset +cpu")
            folder.mkdir()
            self._made.append(folder)
        for file in () if bare else _SETS:
            self.write(path, file, self._inherited(path, file))
        return f"/{self.name}/{path}".rstrip("/")

    def start(self, path: str) -> int:
        """Start a process in a cgroup; return its id."""
        process = subprocess.Popen(("sleep", "600"))
        self._processes.append(process)
        for folder in self._folders(path):
            (folder / "cgroup.procs").write_text(str(process.pid))
        return process.pid

    def stop(self) -> None:
        """End all processes."""
        while self._processes:
            process = self._processes.pop()
            process.kill()
            process.wait()

    def freeze(self, path: str, *, frozen: bool) -> None:
        """Freeze or thaw a cgroup, as runtimes do to pause a container."""
        if IS_V2:
            self.write(path, "cgroup.freeze", str(int(frozen)))
        else:
            state = "FROZEN" if frozen else "THAWED"
            self.write(path, "freezer.state", state)
            what = f"{path} to be {state}"
            wait_until(lambda: self.read(path, "freezer.state") == state, what)

    def remove(self, path: str) -> None:
        """Remove a cgroup that has no processes, or whose processes are ending."""
        for folder in self._folders(path):
            wait_until(partial(_removed, folder), f"{folder} to go")

    def read(self, path: str, file: str) -> str:
        """Read a file of a cgroup."""
        return self.folder(path, file).joinpath(file).read_text().strip()

    def write(self, path: str, file: str, text: str) -> None:
        """Write a file of a cgroup; an empty text is a write, too."""
        fd = os.open(self.folder(path, file) / file, os.O_WRONLY)
        try:
            os.write(fd, f"{text}\n".encode())
        finally:
            os.close(fd)

    def folder(self, path: str, file: str) -> Path:
        """Return the folder of a cgroup that has a file."""
        top = MOUNT if IS_V2 else MOUNT / file.partition(".")[0]
        return top / self.name / path

    def close(self) -> None:
        """End all processes and remove all cgroups."""
        for folder in self._made:
            with suppress(OSError):  # no such file, or no such cgroup
                if (folder / "freezer.state").exists():
                    (folder / "freezer.state").write_text("THAWED")
                else:
                    (folder / "cgroup.freeze").write_text("0")
        self.stop()
        for folder in reversed(self._made):
            wait_until(partial(_removed, folder), f"{folder} to go")

    def _folders(self, path: str) -> Iterator[Path]:
        tops = [MOUNT] if IS_V2 else [MOUNT / name for name in _CONTROLLERS]
        return (top / self.name / path for top in tops)

    def _inherited(self, path: str, file: str) -> str:
        above = (self.folder(path, file) / file).parents[1]
        effective = above / f"{file}.effective"
        return (effective if IS_V2 else above / file).read_text().strip()


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # EBUSY until the kernel has let the last member go
    return True


@contextmanager
def own_cgroups() -> Iterator[OwnCgroups]:
    """Make a cgroup for the test; skip the test where none can be made."""
    cgroups = OwnCgroups(own_name("writer"))
    with ExitStack() as stack:
        stack.callback(cgroups.close)
        try:
            cgroups.make()
        except OSError as reason:
            pytest.skip(f"no cgroup can be made: {reason}")
        yield cgroups


@contextmanager
def mounted_read_only(folder: Path) -> Iterator[Path]:
    """Show this machine's cgroups read-only below a folder; return its root."""
    parts = [MOUNT] if IS_V2 else [MOUNT / "cpuset", MOUNT / "cpu"]
    with ExitStack() as stack:
        for part in parts:
            point = folder / part.relative_to("/")
            point.mkdir(parents=True)
            bind = subprocess.run(("mount", "--bind", part, point), check=False)
            if bind.returncode:
                pytest.skip("nothing can be mounted")
            stack.callback(subprocess.run, ("umount", point), check=True)
            read_only = ("mount", "-o", "remount,bind,ro", point)
            subprocess.run(read_only, check=True)
        yield folder
