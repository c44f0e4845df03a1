"""Topology hints of devices, out of sysfs."""

from __future__ import annotations

import enum
import posixpath
import re
import time
from collections.abc import Callable
from typing import Final

from nri_resmgr.host.fields import optional_cpus, optional_number
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, NO_NODES, NodeSet

_DEVICES: Final = "/sys/devices/"
_CPU_LISTS: Final = ("cpulist", "cpulistaffinity", "local_cpulist", "shared_cpu_list")
_VFIO: Final = re.compile(r"/sys/devices/virtual/vfio/(\d+)", re.ASCII)

# Device mapper on RAID on partitions is three; a loop would never end.
_MAX_DEPTH: Final = 8

# Pods come in bursts and use the same disks. Numbers of devices that are plugged in
# and out, such as functions of network cards, are used again.
MEMORY: Final = 10.0  # seconds


class NodeType(enum.StrEnum):
    """The type of a device file; the values are sysfs' folders."""

    BLOCK = "block"
    CHAR = "char"


def device_hints(
    tree: Tree, kind: NodeType, major: int, minor: int
) -> tuple[Hint, ...]:
    """Find what a device file stands for and where that is.

    Stacked block devices (md, dm) give the hints of what they are made of,
    VFIO groups those of their devices. Virtual devices give none.

    Raises:
        BadHostFile: A file cannot be read as what it should be.
    """
    path = tree.target(f"/sys/dev/{kind}/{major}:{minor}")
    return () if path is None else tuple(_hints_of(tree, path, _MAX_DEPTH).values())


class DeviceHints:
    """Remembers for a while what sysfs told of a device.

    Args:
        tree: The host.
        clock: Seconds.
    """

    def __init__(self, tree: Tree, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._clock = clock
        self._known: dict[tuple[NodeType, int, int], tuple[Hint, ...]] = {}
        self._since = clock()

    def of(self, kind: NodeType, major: int, minor: int) -> tuple[Hint, ...]:
        """See `device_hints`.

        Raises:
            HostError: A file cannot be read, or not as what it should be.
        """
        if (now := self._clock()) - self._since > MEMORY:
            self._known.clear()
            self._since = now
        key = kind, major, minor
        if (known := self._known.get(key)) is None:
            known = self._known[key] = device_hints(self._tree, *key)
        return known


def path_hint(tree: Tree, path: str) -> Hint | None:
    """Find where a device is, by its real path in sysfs; None where nothing tells.

    Raises:
        BadHostFile: A file cannot be read as what it should be.
    """
    return _walk_up(tree, path)


def _hints_of(tree: Tree, path: str, depth: int) -> dict[str, Hint]:
    behind = _behind(tree, path) if depth else ()
    if not behind:
        hint = _walk_up(tree, path)
        return {} if hint is None else {hint.provider: hint}
    found: dict[str, Hint] = {}
    for link in behind:
        real = tree.target(link)
        found |= {} if real is None else _hints_of(tree, real, depth - 1)
    return found


def _behind(tree: Tree, path: str) -> tuple[str, ...]:
    folder = f"{path}/slaves"
    if group := _VFIO.fullmatch(path):
        folder = f"/sys/kernel/iommu_groups/{group[1]}/devices"
    return tuple(f"{folder}/{name}" for name in tree.names(folder))


def _walk_up(tree: Tree, path: str) -> Hint | None:
    """Look in the device's folder and those above for CPUs or a node."""
    at = path
    while at.startswith(_DEVICES):
        lists = (optional_cpus(tree, f"{at}/{name}") for name in _CPU_LISTS)
        cpus = next((found for found in lists if found), NO_CPUS)
        node = optional_number(tree, f"{at}/numa_node")
        nodes = NO_NODES if node is None or node < 0 else NodeSet.of(node)
        if cpus or nodes:
            return Hint(at, cpus, nodes)
        at = posixpath.dirname(at)
    return None
