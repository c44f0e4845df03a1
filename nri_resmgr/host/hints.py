"""Finds topology hints of devices in sysfs."""

from __future__ import annotations

import enum
import posixpath
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from nri_resmgr.host.fields import optional_cpus, optional_number
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import NO_CPUS, NO_NODES, HostError, NodeSet

_DEVICES: Final = "/sys/devices/"
_CPU_LISTS: Final = ("cpulist", "cpulistaffinity", "local_cpulist", "shared_cpu_list")
_VFIO: Final = re.compile(r"/sys/devices/virtual/vfio/(\d+)", re.ASCII)

# Device mapper on RAID on partitions needs three; prevents endless loops.
_MAX_DEPTH: Final = 8

# Pods are created in bursts and use the same disks. Not longer: the numbers of
# unplugged devices, such as network functions, are reused.
MEMORY: Final = 10.0  # seconds


class NodeType(enum.StrEnum):
    """The type of a device file; the values are sysfs' folders."""

    BLOCK = "block"
    CHAR = "char"


_Device: TypeAlias = tuple[NodeType, int, int]


def device_hints(
    tree: Tree, kind: NodeType, major: int, minor: int
) -> tuple[Hint, ...]:
    """Find the CPUs and memory nodes near a device file's device.

    Stacked block devices (md, dm) have the hints of their members, VFIO groups those of
    their devices. Virtual devices have none.

    Raises:
        BadHostFile: A file has an invalid value.
    """
    path = tree.target(f"/sys/dev/{kind}/{major}:{minor}")
    return () if path is None else tuple(_hints_of(tree, path, _MAX_DEPTH).values())


class DeviceHints:
    """Remembers the hints of devices."""

    def __init__(self, tree: Tree, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._clock = clock
        self._known: dict[_Device, tuple[Hint, ...]] = {}
        self._used: set[_Device] = set()
        self._since = clock()

    def of(
        self, kind: NodeType, major: int, minor: int, *, is_due: bool = True
    ) -> tuple[Hint, ...]:
        """Return the hints of a device; see `device_hints`.

        Args:
            kind: Of the device file.
            major: Its major number.
            minor: Its minor number.
            is_due: Whether hints are read again that are older than `MEMORY`.

        Raises:
            HostError: A file cannot be read or has an invalid value.
        """
        key = kind, major, minor
        self._used.add(key)
        if is_due and self._is_old():
            self._known, self._since = {}, self._clock()
        if (known := self._known.get(key)) is None:
            known = self._known[key] = device_hints(self._tree, *key)
        return known

    def read_ahead(self, blocks: Iterable[tuple[int, int]] = ()) -> None:
        """Read what requests may need, as far as it is not known or old; in a thread.

        Args:
            blocks: Major and minor numbers of block devices, besides the devices that
                were used since they were read last.
        """
        wanted: set[_Device] = {(NodeType.BLOCK, *numbers) for numbers in blocks}
        is_old, now = self._is_old(), self._clock()
        # Requests go on meanwhile: they use what was known, and add to it.
        known = {} if is_old else dict(self._known)
        if is_old:
            used, self._used = self._used, set()
            wanted |= used
        for key in wanted - known.keys():
            with suppress(HostError):  # it is reported where a container has it
                known[key] = device_hints(self._tree, *key)
        self._known = known
        if is_old:
            self._since = now

    def _is_old(self) -> bool:
        return self._clock() - self._since > MEMORY


def path_hint(tree: Tree, path: str) -> Hint | None:
    """Find the hint of a device by its real path in sysfs; None if there is none.

    The device's folder or the nearest one above that has CPUs or a node has the hint.

    Raises:
        BadHostFile: A file has an invalid value.
    """
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


def _hints_of(tree: Tree, path: str, depth: int) -> dict[str, Hint]:
    members = _members(tree, path) if depth else ()
    if not members:
        hint = path_hint(tree, path)
        return {} if hint is None else {hint.provider: hint}
    found: dict[str, Hint] = {}
    for link in members:
        real = tree.target(link)
        found |= {} if real is None else _hints_of(tree, real, depth - 1)
    return found


def _members(tree: Tree, path: str) -> tuple[str, ...]:
    folder = f"{path}/slaves"
    if group := _VFIO.fullmatch(path):
        folder = f"/sys/kernel/iommu_groups/{group[1]}/devices"
    return tuple(f"{folder}/{name}" for name in tree.names(folder))
