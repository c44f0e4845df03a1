"""What the platform offers beside CPUs and memory, written back as sysfs files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from nri_resmgr.host.devices import FOLDERS
from nri_resmgr.host.platform import CGROUP_ROOT, SST_DEVICE, UNCORE_ROOT
from nri_resmgr.topology import (
    CgroupLayout,
    Device,
    DeviceKind,
    Machine,
    Rdt,
    RdtResource,
    Uncore,
)

Rows = Iterator[tuple[str, object]]

_ROOT_BUS: Final = re.compile(r"(/sys/devices/pci([0-9a-f:]+))/")
_CONTROLLERS: Final = "cpuset cpu io memory hugetlb pids rdma misc"


def platform_files(machine: Machine) -> Rows:
    """Yield the files of devices, uncore domains, resctrl and cgroups."""
    yield from _devices(machine.devices)
    if machine.has_speed_select:
        yield SST_DEVICE, ""
    for domain in machine.uncore:
        yield from _domain(domain)
    if machine.rdt:
        yield from _rdt(machine.rdt)
    if machine.cgroup:
        yield from _cgroup(machine.cgroup)


def platform_links(machine: Machine) -> dict[str, str]:
    """Return the links from the folders of the classes to the devices."""
    return {f"{FOLDERS[one.kind]}/{one.name}": one.path for one in machine.devices}


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
    """Return the node of the nearest folder above that knows one."""
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
