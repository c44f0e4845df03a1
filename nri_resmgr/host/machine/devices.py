"""Reads hardware devices, and the NUMA nodes and CPUs near them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.host.fields import optional_cpus, optional_number
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Device, DeviceKind, Node
from nri_resmgr.values import CpuSet

# PCI first: the folders above a block or network device are found there.
FOLDERS: Final = {
    DeviceKind.PCI: "/sys/bus/pci/devices",
    DeviceKind.BLOCK: "/sys/class/block",
    DeviceKind.NET: "/sys/class/net",
}

_DEVICES: Final = "/sys/devices"
_VIRTUAL: Final = f"{_DEVICES}/virtual/"
_ROOT_BUS: Final = re.compile(r"/sys/devices/pci([0-9a-f]{4,}:[0-9a-f]{2})/")


def read_devices(
    tree: Tree, nodes: Sequence[Node], online: CpuSet
) -> tuple[Device, ...]:
    """Read PCI, block and network devices, by kind, then name.

    A block or network device has the node of the nearest folder above that has one. A
    node of -1, or one that is not online, counts as unknown.

    Raises:
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/ABI/testing/sysfs-bus-pci, "numa_node".
    """
    near = {node.id: node.cpus for node in nodes}
    found: list[Device] = []
    known: dict[str, int | None] = {}
    for kind, name, path in _hardware(tree):
        node = _node_of(tree, path, known)
        node = node if node in near else None
        cpus = _bus_cpus(tree, path) if node is None else near[node]
        # A node without CPUs, or none at all: all CPUs are equally near.
        local = (cpus or online) & online or online
        found.append(Device(kind, name, path, node, local))
    return tuple(found)


def _hardware(tree: Tree) -> Iterator[tuple[DeviceKind, str, str]]:
    for kind, folder in FOLDERS.items():
        for name in tree.names(folder):
            path = tree.target(f"{folder}/{name}")
            if path and not path.startswith(_VIRTUAL):
                yield kind, name, path


def _node_of(tree: Tree, path: str, known: dict[str, int | None]) -> int | None:
    """Read the node from a device's folder or those above it, each of them once."""
    if path not in known:
        found = optional_number(tree, f"{path}/numa_node")
        unknown = found is None or found < 0
        if unknown and posixpath.dirname(path).startswith(f"{_DEVICES}/"):
            found = _node_of(tree, posixpath.dirname(path), known)
        known[path] = found
    return known[path]


def _bus_cpus(tree: Tree, path: str) -> CpuSet | None:
    """Read the CPUs of a PCI root bus; some firmware has them without a node."""
    match = _ROOT_BUS.match(path)
    if match is None:
        return None
    bus = match[1]
    return optional_cpus(tree, f"{_DEVICES}/pci{bus}/pci_bus/{bus}/cpulistaffinity")
