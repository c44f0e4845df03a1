"""The CPUs that cgroups of the host have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.platform import CGROUP_ROOT
from nri_resmgr.host.tree import MissingHostFile, Tree
from nri_resmgr.values import CpuSet

# What is in force first: the others may be empty, or name offline CPUs.
_FILES: Final = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")


def cpus_of_cgroup(tree: Tree, path: str) -> CpuSet:
    """Read which CPUs the tasks of a cgroup may run on.

    Args:
        tree: The host.
        path: The cgroup's folder, on the host or below where cgroups, or the
            cpuset controller of version 1, are mounted; in this order.

    Raises:
        MissingHostFile: There is no such cgroup, or it has no CPUs of its own.
        BadHostFile: One of its files is no list of CPUs.
    """
    for folder in _folders(path):
        for name in _FILES:
            if cpus := optional_cpus(tree, f"{folder}/{name}"):
                return cpus
    raise MissingHostFile(f"{CGROUP_ROOT}/{path.strip('/')}/{_FILES[0]}")


def _folders(path: str) -> Iterator[str]:
    inside = path.strip("/")
    if path.startswith("/"):
        yield f"/{inside}"
    yield f"{CGROUP_ROOT}/{inside}"
    yield f"{CGROUP_ROOT}/cpuset/{inside}"
