"""A model written back as the sysfs files that would have told of it."""

from __future__ import annotations

import errno
from pathlib import Path

from nri_resmgr.host.paths import (
    CPU_ROOT,
    DAX_ROOT,
    KIND_LISTS,
    ND_ROOT,
    NODE_ROOT,
)
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.sysfs_platform import Rows, platform_files, platform_links
from nri_resmgr.topology import Core, CoreKind, Cpu, Machine, MemoryKind, Node

# MB/s as HMAT of a server with both kinds tells it.
_BANDWIDTH = {MemoryKind.DRAM: 200_000, MemoryKind.HBM: 800_000}

# Where the kernel hangs the device-dax of CXL regions.
_CXL_REGION = "/sys/devices/platform/ACPI0017:00/root0/decoder0.0"

_NO_CLUSTER = 65535


def sysfs_files(machine: Machine) -> RecordedTree:
    """Return the files from which `read_machine` makes an equal machine.

    Sizes are whole KiB in sysfs; a fraction of one is lost. The kind of a
    memory-only node needs other memory beside it: without a node that has both
    CPUs and memory nothing tells HBM from DRAM; and nothing tells that the
    memory of a node with CPUs is no DRAM. What Speed Select tells is not in
    files.
    """
    files = {
        path: str(value)
        for rows in (
            _sets(machine),
            _cores(machine),
            _caches(machine),
            _frequencies(machine),
            _nodes(machine),
            _regions(machine),
            platform_files(machine),
        )
        for path, value in rows
    }
    links = {
        f"{DAX_ROOT}/dax{node.id}.0": f"{_CXL_REGION}/region{node.id}/dax{node.id}.0"
        for node in machine.nodes
        if node.kind is MemoryKind.CXL and node.memory
    }
    return RecordedTree(files, {**links, **platform_links(machine)})


def write_tree(tree: RecordedTree, root: Path) -> None:
    """Write a tree as real files and relative links below *root*.

    Other programs may read it as their sysfs, given a root of their own.

    Raises:
        OSError: The files cannot be made, or *root* holds others already.
    """
    if root.exists() and any(root.iterdir()):
        # Old files among the new ones would make a machine that nobody asked for.
        raise OSError(errno.ENOTEMPTY, "it is not empty; name a new folder")
    for path, text in tree.files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    for path, target in tree.links.items():
        if path == target:
            continue
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * path.strip("/").count("/")
        link.symlink_to(up + target.lstrip("/"))


def _sets(machine: Machine) -> Rows:
    yield f"{CPU_ROOT}/possible", machine.present
    yield f"{CPU_ROOT}/present", machine.present
    yield f"{CPU_ROOT}/online", machine.online
    yield f"{CPU_ROOT}/offline", machine.offline
    yield f"{CPU_ROOT}/isolated", machine.isolated
    for cpu in machine.present:
        yield f"{CPU_ROOT}/cpu{cpu}/online", int(cpu in machine.online)
    if machine.kinds != (CoreKind.PERFORMANCE,):
        for kind in machine.kinds:
            yield KIND_LISTS[kind], machine.cpus_of_kind(kind)


def _cores(machine: Machine) -> Rows:
    for core in machine.cores:
        die = machine.die_of(core.cpus.first)
        package = machine.package_of(core.cpus.first)
        for cpu in core.cpus:
            folder = f"{CPU_ROOT}/cpu{cpu}/topology"
            yield f"{folder}/physical_package_id", core.package
            yield f"{folder}/die_id", core.die
            yield f"{folder}/cluster_id", _cluster(core)
            yield f"{folder}/core_id", core.id
            yield f"{folder}/core_cpus_list", core.cpus
            yield f"{folder}/die_cpus_list", die.cpus
            yield f"{folder}/package_cpus_list", package.cpus


def _cluster(core: Core) -> int:
    return _NO_CLUSTER if core.cluster is None else core.cluster


def _caches(machine: Machine) -> Rows:
    used = dict.fromkeys(machine.online, 0)
    for cache in machine.caches:
        for cpu in cache.cpus:
            folder = f"{CPU_ROOT}/cpu{cpu}/cache/index{used[cpu]}"
            used[cpu] += 1
            yield f"{folder}/level", cache.level
            yield f"{folder}/type", cache.kind
            yield f"{folder}/shared_cpu_list", cache.cpus
            if cache.size:
                yield f"{folder}/size", f"{cache.size >> 10}K"
            if cache.id is not None:
                yield f"{folder}/id", cache.id


def _frequencies(machine: Machine) -> Rows:
    for cpu in machine.cpus:
        folder = f"{CPU_ROOT}/cpufreq/policy{cpu.id}"
        facts = tuple(_policy(cpu))
        for name, value in facts:
            yield f"{folder}/{name}", value
        if facts:
            yield f"{folder}/affected_cpus", cpu.id
        if cpu.capacity is not None:
            yield f"{CPU_ROOT}/cpu{cpu.id}/cpu_capacity", cpu.capacity


def _policy(cpu: Cpu) -> Rows:
    known = {
        "base_frequency": cpu.base,
        "cpuinfo_min_freq": cpu.min,
        "cpuinfo_max_freq": cpu.max,
        "scaling_governor": cpu.governor,
        "energy_performance_preference": cpu.epp,
    }
    for name, value in known.items():
        if value:
            yield name, value


def _nodes(machine: Machine) -> Rows:
    yield f"{NODE_ROOT}/online", machine.node_ids
    yield f"{NODE_ROOT}/possible", machine.node_ids
    yield f"{NODE_ROOT}/has_cpu", machine.cpu_nodes
    yield f"{NODE_ROOT}/has_memory", machine.memory_nodes
    yield f"{NODE_ROOT}/has_normal_memory", machine.normal_nodes
    for node, row in zip(machine.nodes, machine.distances, strict=True):
        folder = f"{NODE_ROOT}/node{node.id}"
        yield f"{folder}/cpulist", node.cpus
        yield f"{folder}/distance", " ".join(map(str, row))
        yield f"{folder}/meminfo", _meminfo(f"Node {node.id} ", node.memory)
        for pool in node.hugepages:
            pages = f"{folder}/hugepages/hugepages-{pool.size >> 10}kB"
            yield f"{pages}/nr_hugepages", pool.count
            yield f"{pages}/free_hugepages", pool.count
    yield "/proc/meminfo", _meminfo("", sum(node.memory for node in machine.nodes))


def _meminfo(prefix: str, memory: int) -> str:
    total = memory >> 10
    return f"{prefix}MemTotal: {total:>15} kB\n{prefix}MemFree:  {total:>15} kB"


def _regions(machine: Machine) -> Rows:
    """Yield the evidence of every kind of memory."""
    for node in machine.nodes:
        if node.memory:
            yield from _evidence(node)


def _evidence(node: Node) -> Rows:
    match node.kind:
        case MemoryKind.PMEM:
            yield f"{ND_ROOT}/region{node.id}/target_node", node.id
        case MemoryKind.CXL:
            dax = f"{_CXL_REGION}/region{node.id}/dax{node.id}.0"
            yield f"{dax}/target_node", node.id
        case kind:
            folder = f"{NODE_ROOT}/node{node.id}/access0/initiators"
            yield f"{folder}/read_bandwidth", _BANDWIDTH[kind]
