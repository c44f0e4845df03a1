"""Cgroup v2 with the kernel's rules about partitions, as of Linux 6.12.117.

`tests/qemu/guest_tests/test_partitions.py` compares it with a real kernel.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterable

from nri_resmgr.values import NO_CPUS, CpuSet

TOP = "/sys/fs/cgroup"
_OTHERS = {"cgroup.procs": "42", "cpuset.mems": "0", "cpu.weight": "100"}
NOT_EXCLUSIVE = "Cpu list in cpuset.cpus not exclusive"
NOT_HANDED_DOWN = "Invalid cpu list in cpuset.cpus.exclusive"
LOST = "Parent is not a partition root"


class PartitionKernel:
    """A tree of cgroups; a `WritableTree`.

    Args:
        cpus: All of the machine.
        folders: Cgroups, those above before those below.
        is_older: Whether a partition whose CPUs are taken from a cgroup above becomes
            a member, as in the first releases of Linux 6.12, and not an invalid one.

    Attributes:
        writes: All that were accepted, as path below the top and text.
    """

    root = ""

    def __init__(
        self, cpus: CpuSet, folders: Iterable[str], *, is_older: bool = False
    ) -> None:
        self._all = cpus
        self._is_older = is_older
        self._files: dict[str, dict[str, CpuSet]] = {}
        self._states: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self.writes: list[tuple[str, str]] = []
        for folder in folders:
            self.make(folder)

    def make(self, folder: str) -> None:
        """Make a cgroup; *folder* is below the top, here and below."""
        self._files[f"{TOP}/{folder}"] = {"cpus": NO_CPUS, "cpus.exclusive": NO_CPUS}
        self._states[f"{TOP}/{folder}"] = "member"
        for name, text in _OTHERS.items():
            self._others[f"{TOP}/{folder}/{name}"] = text

    def remove(self, folder: str) -> None:
        """Remove a cgroup, and its partition with it."""
        del self._files[f"{TOP}/{folder}"], self._states[f"{TOP}/{folder}"]
        for name in _OTHERS:
            del self._others[f"{TOP}/{folder}/{name}"]

    def exclusive(self) -> dict[str, str]:
        """Return the exclusive CPUs of all cgroups that have any."""
        return {
            folder.removeprefix(f"{TOP}/"): str(files["cpus.exclusive"])
            for folder, files in self._files.items()
            if files["cpus.exclusive"]
        }

    def effective(self, folder: str) -> CpuSet:
        """Return the CPUs that processes of a cgroup may run on."""
        at = f"{TOP}/{folder}"
        if self._is_valid(at):
            return self._files[at]["cpus.exclusive"]
        taken = CpuSet.union(
            files["cpus.exclusive"]
            for one, files in self._files.items()
            if self._is_valid(one)
        )
        left = self._all - taken
        return (self._files[at]["cpus"] & left) or left

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        if path == f"{TOP}/cgroup.controllers":
            return "cpuset cpu"
        folder, _, name = path.rpartition("/")
        if folder not in self._files:
            return None
        if name == "cpuset.cpus.partition":
            return self._states[folder]
        if name == "cpuset.cpus.effective":
            return str(self.effective(folder.removeprefix(f"{TOP}/")))
        if path in self._others:
            return self._others[path]
        found = self._files[folder].get(name.removeprefix("cpuset."))
        return None if found is None else str(found)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        return tuple(
            sorted(
                posixpath.basename(one)
                for one in self._files
                if posixpath.dirname(one) == path
            )
        )

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        return path if path in self._files else None

    def write(self, path: str, text: str) -> None:
        """See `WritableTree.write`."""
        folder, _, name = path.rpartition("/")
        if folder not in self._files:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if path in self._others:
            self._others[path] = text
        elif name == "cpuset.cpus.partition":
            self._states[folder] = text
            if text != "member" and self._beside(folder):
                self._states[folder] = f"{text} invalid ({NOT_EXCLUSIVE})"
            elif text != "member" and not self._is_handed_down(folder):
                self._lose(folder, NOT_HANDED_DOWN)
        else:
            key, value = name.removeprefix("cpuset."), CpuSet.parse(text)
            if key == "cpus.exclusive" and self._conflicts(folder, value):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            self._files[folder][key] = value
        self.writes.append((path.removeprefix(f"{TOP}/"), text))
        for one, state in self._states.items():
            if "invalid" not in state and state != "member" and self._beside(one):
                self._states[one] = f"{state} invalid"
            if state != "member" and not self._is_handed_down(one):
                self._lose(one, LOST)

    def _lose(self, folder: str, why: str) -> None:
        if self._is_older:
            self._states[folder] = "member"
        elif "invalid" not in self._states[folder]:
            self._states[folder] += f" invalid ({why})"

    def _is_valid(self, folder: str) -> bool:
        return self._states[folder] in ("root", "isolated")

    def _is_handed_down(self, folder: str) -> bool:
        """Return whether all cgroups above have the exclusive CPUs of one."""
        cpus = self._files[folder]["cpus.exclusive"]
        above = posixpath.dirname(folder)
        while above != TOP:
            if not cpus <= self._files[above]["cpus.exclusive"]:
                return False
            above = posixpath.dirname(above)
        return bool(cpus)

    def _siblings(self, folder: str) -> list[dict[str, CpuSet]]:
        parent = posixpath.dirname(folder)
        return [
            files
            for one, files in self._files.items()
            if one != folder and posixpath.dirname(one) == parent
        ]

    def _conflicts(self, folder: str, value: CpuSet) -> bool:
        return any(
            files["cpus.exclusive"] & value
            or (files["cpus"] and files["cpus"] <= value)
            for files in self._siblings(folder)
        )

    def _beside(self, folder: str) -> bool:
        """Return whether a cgroup beside a partition may use one of its CPUs."""
        cpus = self._files[folder]["cpus.exclusive"]
        return any(files["cpus"] & cpus for files in self._siblings(folder))
