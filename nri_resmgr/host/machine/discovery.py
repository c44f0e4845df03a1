"""Reads the model of the machine from sysfs and procfs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nri_resmgr.host.cgroups.layout import read_cgroup_layout
from nri_resmgr.host.fields import cpus, optional_cpus
from nri_resmgr.host.machine.caches import read_caches
from nri_resmgr.host.machine.cores import read_cores, read_cpus
from nri_resmgr.host.machine.devices import read_devices
from nri_resmgr.host.machine.nodes import read_distances, read_nodes
from nri_resmgr.host.machine.platform import (
    has_speed_select,
    read_rdt,
    read_uncore,
)
from nri_resmgr.host.paths import CPU_ROOT
from nri_resmgr.host.tree import BadHostFile, Tree, naming_root
from nri_resmgr.log import Logger
from nri_resmgr.topology import ContradictoryMachine, Core, Machine, MemoryKind
from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import NO_CPUS

NO_MEMORY_KINDS: Final[Mapping[int, MemoryKind]] = MappingProxyType({})

log = Logger(__name__)


def read_machine(
    tree: Tree, memory_kinds: Mapping[int, MemoryKind] = NO_MEMORY_KINDS
) -> Machine:
    """Read the whole model, about 20 files per core.

    Fallbacks are logged as ``topology.fallback``.

    Configured kinds of memory, by node, take precedence; those of nodes without memory
    are logged as ``topology.unused``.

    Raises:
        MissingHostFile: A required file is missing.
        UnreadableHostFile: A file is there and cannot be read.
        BadHostFile: A file has an invalid value, or files contradict each other. That
            also happens when a CPU comes or goes meanwhile: read again.
    """
    with naming_root(tree):
        return _read(tree, memory_kinds)


def _read(tree: Tree, memory_kinds: Mapping[int, MemoryKind]) -> Machine:
    online = cpus(tree, f"{CPU_ROOT}/online")
    if not online:
        raise BadHostFile(f"{CPU_ROOT}/online", "no CPU is online")
    present = optional_cpus(tree, f"{CPU_ROOT}/present")
    if present is None:
        log.warning("topology.fallback", missing=f"{CPU_ROOT}/present", used="online")
        present = online
    if online - present:
        raise BadHostFile(f"{CPU_ROOT}/present", f"lacks online CPU {online - present}")
    isolated = optional_cpus(tree, f"{CPU_ROOT}/isolated") or NO_CPUS
    nodes = read_nodes(tree, online, present, memory_kinds)
    cores = read_cores(tree, online)
    has_driver = has_speed_select(tree)
    try:
        return Machine(
            cores=cores,
            cpus=read_cpus(tree, online),
            nodes=nodes,
            distances=read_distances(tree, nodes),
            caches=read_caches(tree, online),
            present=present,
            # The kernel's command line may name CPUs that are offline or absent.
            isolated=isolated & online,
            devices=read_devices(tree, nodes, online),
            uncore=read_uncore(tree),
            rdt=read_rdt(tree),
            cgroup=read_cgroup_layout(tree),
            has_speed_select=has_driver,
            speed_select=_read_punits(tree, cores) if has_driver else (),
        )
    except ContradictoryMachine as error:
        raise BadHostFile("/sys/devices/system", error.what) from error


def _read_punits(tree: Tree, cores: Sequence[Core]) -> tuple[Punit, ...]:
    # On the start path: few machines have the driver.
    from nri_resmgr.host.speed_select.device import read_speed_select

    return read_speed_select(tree, cores)
