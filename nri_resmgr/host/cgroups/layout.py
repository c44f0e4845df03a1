"""The mounts and the version of the cgroups of a host."""

from __future__ import annotations

from typing import Final

from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import CgroupLayout

CGROUP_ROOT: Final = "/sys/fs/cgroup"
MISC_CAPACITY: Final = f"{CGROUP_ROOT}/misc.capacity"


def read_cgroup_layout(tree: Tree) -> CgroupLayout | None:
    """Return how cgroups are mounted; None where they are not.

    Source:
        systemd, "Control Group APIs and Delegation", "Three Different Tree
        Setups".
    """
    if tree.read(f"{CGROUP_ROOT}/cgroup.controllers") is not None:
        return CgroupLayout.V2
    if tree.read(f"{CGROUP_ROOT}/unified/cgroup.controllers") is not None:
        return CgroupLayout.HYBRID
    cpuset = tree.read(f"{CGROUP_ROOT}/cpuset/cpuset.cpus")
    return CgroupLayout.V1 if cpuset is not None else None
