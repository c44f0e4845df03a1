"""Reads the CPUs of a cgroup by its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.tree import BadHostFile, MissingHostFile, Tree
from nri_resmgr.values import CpuSet

# Effective values first: the others may be empty, or name offline CPUs.
_FILES: Final = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")


def cpus_of_cgroup(tree: Tree, path: str) -> CpuSet:
    """Read the CPUs on which tasks of a cgroup may run.

    *path* is on the host, below the mount point of cgroups, or below that of the cpuset
    controller (v1); the first that exists.

    Raises:
        MissingHostFile: There is no such cgroup, or it has no list of CPUs.
        BadHostFile: A file is not a list of CPUs, or all lists are empty.
    """
    empty = ""
    for folder in _folders(path):
        for name in _FILES:
            cpus = optional_cpus(tree, file := f"{folder}/{name}")
            if cpus:
                return cpus
            if cpus is not None:
                empty = empty or file
    if empty:
        raise BadHostFile(empty, "it names no CPU")
    raise MissingHostFile(f"{CGROUP_ROOT}/{path.strip('/')}/{_FILES[0]}")


def _folders(path: str) -> Iterator[str]:
    inside = path.strip("/")
    if path.startswith("/"):
        yield f"/{inside}"
    yield f"{CGROUP_ROOT}/{inside}"
    yield f"{CGROUP_ROOT}/cpuset/{inside}"
