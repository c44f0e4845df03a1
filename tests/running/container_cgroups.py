"""Cgroups of containers for the test runtime: of this machine's kernel, or files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.host.own_cgroups import IS_V2, OwnCgroups
from tests.host.own_cgroups import MOUNT as OWN_MOUNT
from tests.real_host.patience import wait_until
from tests.real_host.runs import own_name
from tests.verification.cgroup_trees import MOUNT, V1, tree_with

_CPUS: Final = "cpuset.cpus"
_MEMS: Final = "cpuset.mems"

# Longer than any test, and not for ever: the test may be killed.
_SLEEP: Final = ("sleep", "3600")


class ContainerCgroups(Protocol):
    """Cgroups of containers by their names.

    Attributes:
        root: The root of the host, for the daemon.
        machine: The model of that host.
    """

    root: Path
    machine: Machine

    def path(self, name: str) -> str:
        """Return the path of a container's cgroup, as in its OCI spec."""

    def make(self, name: str, cpus: str, mems: str) -> None:
        """Make a cgroup with a process; empty sets are those of the one above."""

    def write(self, name: str, cpus: str, mems: str) -> None:
        """Write sets that are not empty, unless the container has ended."""

    def cpus(self, name: str) -> CpuSet | None:
        """Return the CPUs that are in force; None if the container has ended."""

    def mems(self, name: str) -> str:
        """Return the memory nodes that are in force for a container."""

    def freeze(self, name: str, *, frozen: bool) -> None:
        """Freeze or thaw its processes, unless the container has ended."""

    def end(self, name: str) -> None:
        """End its process and remove its cgroup, if it has one."""

    def close(self) -> None:
        """Remove all cgroups."""


class KernelCgroups:
    """Real cgroups with a sleeping process each.

    Args:
        root: The root of the host; `with_own_cgroups` makes others.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self.machine = read_machine(HostTree(root))
        self._own = OwnCgroups(own_name("races"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._own.make()

    def path(self, name: str) -> str:
        """See `ContainerCgroups.path`."""
        return f"/{self._own.name}/{name}"

    def make(self, name: str, cpus: str, mems: str) -> None:
        """See `ContainerCgroups.make`."""
        self._own.make(name)
        process = subprocess.Popen(_SLEEP, stdin=subprocess.DEVNULL)
        self._processes[name] = process
        self.write(name, cpus, mems)
        for folder in self._folders(name):
            (folder / "cgroup.procs").write_text(str(process.pid))

    def write(self, name: str, cpus: str, mems: str) -> None:
        """See `ContainerCgroups.write`."""
        with suppress(FileNotFoundError):
            for file, text in ((_CPUS, cpus), (_MEMS, mems)):
                if text:
                    self._own.write(name, file, text)

    def cpus(self, name: str) -> CpuSet | None:
        """See `ContainerCgroups.cpus`."""
        file = "cpuset.cpus.effective" if IS_V2 else _CPUS
        try:
            return CpuSet.parse(self._own.read(name, file))
        except OSError:
            return None

    def mems(self, name: str) -> str:
        """See `ContainerCgroups.mems`."""
        return self._own.read(name, "cpuset.mems.effective" if IS_V2 else _MEMS)

    def freeze(self, name: str, *, frozen: bool) -> None:
        """See `ContainerCgroups.freeze`."""
        if name in self._processes:
            self._own.freeze(name, frozen=frozen)

    def end(self, name: str) -> None:
        """See `ContainerCgroups.end`."""
        if process := self._processes.pop(name, None):
            self._own.freeze(name, frozen=False)
            process.kill()
            process.wait()
            for folder in self._folders(name):
                wait_until(partial(_is_removed, folder), f"{folder} to go")

    def close(self) -> None:
        """See `ContainerCgroups.close`."""
        for name in list(self._processes):
            self.end(name)
        self._own.close()

    def _folders(self, name: str) -> Iterator[Path]:
        files = (_CPUS,) if IS_V2 else (_CPUS, "cpu.shares", "freezer.state")
        return (self._own.folder(name, file) for file in files)


def with_own_cgroups(root: Path, machine: str) -> Path:
    """Write the sysfs of a machine, with the cgroups of this one; return its root.

    So CPUs come and go without those of this machine.
    """
    write_tree(sysfs_files(parse_spec(machine)), root)
    parts = [OWN_MOUNT] if IS_V2 else [OWN_MOUNT / "cpuset", OWN_MOUNT / "cpu"]
    for part in parts:
        link = root / part.relative_to("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(part)
    return root


def _is_removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


class FolderCgroups:
    """Files as those of cgroup v1, for machines that this one is not.

    Nothing is in force that was not written: there are no effective values.

    Args:
        folder: For the host's root.
        machine: Its specification, such as ``2s2n4c2t``.
    """

    def __init__(self, folder: Path, machine: str) -> None:
        self.root = folder / "host"
        self.machine = parse_spec(machine)
        write_tree(sysfs_files(self.machine), self.root)
        top = {"cpuset/cpuset.cpus": f"{self.machine.online}"}
        tree_with(self.root, V1 | top)

    def path(self, name: str) -> str:
        """See `ContainerCgroups.path`."""
        return f"/kubepods/{name}"

    def make(self, name: str, cpus: str, mems: str) -> None:
        """See `ContainerCgroups.make`."""
        sets, cpu = f"cpuset/kubepods/{name}", f"cpu/kubepods/{name}"
        files = {
            f"{sets}/{_CPUS}": cpus or str(self.machine.online),
            f"{sets}/{_MEMS}": mems or str(self.machine.memory_nodes),
            f"{cpu}/cpu.shares": "1024",
            f"{cpu}/cgroup.procs": "42",
            f"{sets}/cgroup.procs": "42",
        }
        tree_with(self.root, files)

    def write(self, name: str, cpus: str, mems: str) -> None:
        """See `ContainerCgroups.write`."""
        folder = self._folder("cpuset", name)
        if folder.exists():
            for file, text in ((_CPUS, cpus), (_MEMS, mems)):
                if text:
                    (folder / file).write_text(f"{text}\n")

    def cpus(self, name: str) -> CpuSet | None:
        """See `ContainerCgroups.cpus`; a file that is being written is empty."""
        try:
            text = (self._folder("cpuset", name) / _CPUS).read_text()
        except FileNotFoundError:
            return None
        return CpuSet.parse(text.strip())

    def mems(self, name: str) -> str:
        """See `ContainerCgroups.mems`."""
        return (self._folder("cpuset", name) / _MEMS).read_text().strip()

    def freeze(self, name: str, *, frozen: bool) -> None:
        """Do nothing: files have no processes."""

    def end(self, name: str) -> None:
        """See `ContainerCgroups.end`."""
        for controller in ("cpuset", "cpu"):
            shutil.rmtree(self._folder(controller, name), ignore_errors=True)

    def close(self) -> None:
        """Do nothing: the folder is the test's."""

    def _folder(self, controller: str, name: str) -> Path:
        return self.root / MOUNT / controller / "kubepods" / name
