"""Reads what an earlier process has left in force in the cgroups of containers."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Final

from nri_resmgr.host.cgroups.containers import CgroupReference, ContainerCgroups
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import NO_CPUS, NO_NODES, HostError

# A thousand containers take 40 ms, and a runtime waits five seconds for a plugin that
# it launches. Where files are as slow as that, the records of the rest count.
_LONGEST: Final = 1.0  # seconds


def read_pins(tree: Tree, cgroups: Iterable[CgroupReference]) -> dict[str, Pin]:
    """Read CPUs and memory nodes that are in force, by container.

    Effective ones: the kernel keeps a container off CPUs of others' partitions that are
    in its cpuset. Containers without a cgroup, or with one that cannot be read, are
    left out.
    """
    reader, end = ContainerCgroups(tree), monotonic() + _LONGEST
    found = {}
    for cgroup in cgroups:
        if monotonic() > end:
            break
        try:
            one = reader.read(cgroup)
        except HostError:
            continue
        if one is not None:
            found[cgroup.id] = Pin(one.cpus or NO_CPUS, one.mems or NO_NODES)
    return found
