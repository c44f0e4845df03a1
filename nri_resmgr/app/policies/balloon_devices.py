"""Which CPUs are close to what ``preferCloseToDevices`` names by a path in sysfs."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.hints import path_hint
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, NodeSet

_NODE: Final = re.compile(r"/sys/devices/system/node/node(\d+)", re.ASCII)
_CPU: Final = re.compile(r"/sys/devices/system/cpu/cpu(\d+)", re.ASCII)
_LISTS: Final = ("cpulist", "shared_cpu_list", "local_cpulist", "cpulistaffinity")


def cpus_close_to(path: str, machine: Machine, tree: Tree | None) -> CpuSet:
    """Find the CPUs that a thing of sysfs is close to.

    Nodes and single CPUs are taken from the model of the machine, all else from the
    host.

    Returns:
        No CPUs where nothing is known: such a wish weighs nothing.

    Raises:
        HostError: A file cannot be read as what it should be.
    """
    if node := _NODE.fullmatch(path):
        return machine.cpus_of(NodeSet.of(int(node[1])))
    if cpu := _CPU.fullmatch(path):
        return CpuSet.of(int(cpu[1])) & machine.online
    return NO_CPUS if tree is None else _read(path, machine, tree)


def _read(path: str, machine: Machine, tree: Tree) -> CpuSet:
    folder = path.rstrip("/")
    if posixpath.basename(folder) in _LISTS:
        return (optional_cpus(tree, folder) or NO_CPUS) & machine.online
    for name in _LISTS:
        if found := optional_cpus(tree, f"{folder}/{name}"):
            return found & machine.online
    real = tree.target(folder)
    hint = None if real is None else path_hint(tree, real)
    if hint is None:
        return NO_CPUS
    return hint.cpus & machine.online or machine.cpus_of(hint.nodes)
