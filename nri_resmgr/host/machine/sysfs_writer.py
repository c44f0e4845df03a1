"""Writes the sysfs files of a model: the inverse of discovery."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.machine.devices import FOLDERS
from nri_resmgr.host.machine.platform import UNCORE_ROOT
from nri_resmgr.host.paths import (
    CPU_ROOT,
    DAX_ROOT,
    KIND_LISTS,
    ND_ROOT,
    NODE_ROOT,
    SST_DEVICE,
)
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.topology import (
    CgroupLayout,
    CoreKind,
    Device,
    DeviceKind,
    Machine,
    MemoryKind,
    Rdt,
    RdtResource,
    Uncore,
)

# MB/s, as HMAT of a server with both kinds.
_BANDWIDTH = {MemoryKind.DRAM: 200_000, MemoryKind.HBM: 800_000}

# The kernel's folder for dax devices of CXL regions.
_CXL_REGION = "/sys/devices/platform/ACPI0017:00/root0/decoder0.0"

_NO_CLUSTER = 65535
Rows = Iterator[tuple[str, object]]
_ROOT_BUS: Final = re.compile(r"(/sys/devices/pci([0-9a-f:]+))/")
_CONTROLLERS: Final = "cpuset cpu io memory hugetlb pids rdma misc"


def sysfs_files(machine: Machine) -> RecordedTree:
    """Return files from which `read_machine` reads an equal machine.

    Some facts cannot be written as files: fractions of a KiB, the facts of Speed
    Select, memory other than DRAM in a node with CPUs, and HBM without a node that has
    both CPUs and memory.
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
            _platform(machine),
        )
        for path, value in rows
    }
    links = {
        f"{DAX_ROOT}/dax{node.id}.0": f"{_CXL_REGION}/region{node.id}/dax{node.id}.0"
        for node in machine.nodes
        if node.kind is MemoryKind.CXL and node.memory
    }
    devices = {f"{FOLDERS[one.kind]}/{one.name}": one.path for one in machine.devices}
    return RecordedTree(files, links | devices)


def write_tree(tree: RecordedTree, root: Path) -> None:
    """Write a tree as real files and relative links below *root*.

    Raises:
        OSError: The files cannot be created, or *root* is not empty.
    """
    if root.exists() and any(root.iterdir()):
        # Old files among the new ones would result in another machine.
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
        cluster = _NO_CLUSTER if core.cluster is None else core.cluster
        for cpu in core.cpus:
            folder = f"{CPU_ROOT}/cpu{cpu}/topology"
            yield f"{folder}/physical_package_id", core.package
            yield f"{folder}/die_id", core.die
            yield f"{folder}/cluster_id", cluster
            yield f"{folder}/core_id", core.id
            yield f"{folder}/core_cpus_list", core.cpus
            yield f"{folder}/die_cpus_list", die.cpus
            yield f"{folder}/package_cpus_list", package.cpus


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
        facts = {
            "base_frequency": cpu.base,
            "cpuinfo_min_freq": cpu.min,
            "cpuinfo_max_freq": cpu.max,
            "scaling_governor": cpu.governor,
            "energy_performance_preference": cpu.epp,
        }
        for name, value in facts.items():
            if value:
                yield f"{folder}/{name}", value
        if any(facts.values()):
            yield f"{folder}/affected_cpus", cpu.id
        if cpu.capacity is not None:
            yield f"{CPU_ROOT}/cpu{cpu.id}/cpu_capacity", cpu.capacity


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
    """Yield the evidence of every node's kind of memory."""
    for node in machine.nodes:
        match node.kind:
            case _ if not node.memory:
                pass
            case MemoryKind.PMEM:
                yield f"{ND_ROOT}/region{node.id}/target_node", node.id
            case MemoryKind.CXL:
                dax = f"{_CXL_REGION}/region{node.id}/dax{node.id}.0"
                yield f"{dax}/target_node", node.id
            case kind:
                folder = f"{NODE_ROOT}/node{node.id}/access0/initiators"
                yield f"{folder}/read_bandwidth", _BANDWIDTH[kind]


def _platform(machine: Machine) -> Rows:
    yield from _devices(machine.devices)
    if machine.has_speed_select:
        yield SST_DEVICE, ""
    for domain in machine.uncore:
        yield from _domain(domain)
    if machine.rdt:
        yield from _rdt(machine.rdt)
    if machine.cgroup:
        yield from _cgroup(machine.cgroup)


def _devices(devices: Sequence[Device]) -> Rows:
    known: dict[str, int | None] = {}
    for device in devices:  # PCI first: the others are found below
        if device.kind is DeviceKind.PCI:
            known[device.path] = device.node
            yield f"{device.path}/numa_node", -1 if device.node is None else device.node
            yield f"{device.path}/local_cpulist", device.cpus
        else:
            word = "DEVNAME" if device.kind is DeviceKind.BLOCK else "INTERFACE"
            yield f"{device.path}/uevent", f"{word}={device.name}"
            if device.node is not None and device.node != _above(device.path, known):
                yield f"{device.path}/numa_node", device.node
        bus = _ROOT_BUS.match(device.path)
        if bus and device.node is None:
            yield f"{bus[1]}/pci_bus/{bus[2]}/cpulistaffinity", device.cpus


def _above(path: str, known: Mapping[str, int | None]) -> int | None:
    """Return the node of the nearest folder above that has one."""
    nodes = (known.get(str(folder)) for folder in PurePosixPath(path).parents)
    return next((node for node in nodes if node is not None), None)


def _domain(uncore: Uncore) -> Rows:
    folder = f"{UNCORE_ROOT}/{uncore.name}"
    facts = {
        "package_id": None if uncore.die is not None else uncore.package,
        "domain_id": uncore.domain,
        "initial_min_freq_khz": uncore.min or 0,
        "initial_max_freq_khz": uncore.max or 0,
    }
    for name, value in facts.items():
        if value is not None:
            yield f"{folder}/{name}", value


def _rdt(rdt: Rdt) -> Rows:
    options = ",".join(rdt.options)
    yield "/proc/mounts", f"resctrl {rdt.mount} resctrl {options} 0 0"
    for resource in rdt.resources:
        for name, value in _resource(resource):
            yield f"{rdt.mount}/info/{resource.name}/{name}", value
    if rdt.rmids or rdt.features:
        yield f"{rdt.mount}/info/L3_MON/num_rmids", rdt.rmids
        yield f"{rdt.mount}/info/L3_MON/mon_features", "\n".join(rdt.features)


def _resource(resource: RdtResource) -> Rows:
    yield "num_closids", resource.closids
    if resource.mask:
        yield "cbm_mask", f"{resource.mask:x}"
        yield "min_cbm_bits", resource.min_bits
        yield "sparse_masks", int(resource.sparse)
    else:
        yield "min_bandwidth", resource.min_percent
        yield "bandwidth_gran", resource.step_percent


def _cgroup(layout: CgroupLayout) -> Rows:
    match layout:
        case CgroupLayout.V2:
            yield f"{CGROUP_ROOT}/cgroup.controllers", _CONTROLLERS
        case CgroupLayout.HYBRID:
            yield f"{CGROUP_ROOT}/unified/cgroup.controllers", ""
    if layout is not CgroupLayout.V2:
        yield f"{CGROUP_ROOT}/cpuset/cpuset.cpus", ""
