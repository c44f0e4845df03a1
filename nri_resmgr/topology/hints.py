"""Topology hints: CPUs and nodes near the devices and files of a container."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from nri_resmgr.topology.machine import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet, StoredValue

_POD_RESOURCE: Final = "podresapi:"

# Parts of every image or pod: their location says nothing about a workload.
_COMMON: Final = (
    "/.cri-resmgr",
    "/.nri-resource-policy",
    "/dev/shm",  # noqa: S108 - looked for, not written to
    "/dev/termination-log",
    "/etc/",
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
)
_SMALL_VOLUME: Final = re.compile(
    r"/pods/[^/]+/volumes/kubernetes\.io~(?:configmap|secret)/"
)


class Hint(StoredValue, frozen=True):
    """The CPUs and nodes near a device or file that a container uses.

    Attributes:
        provider: Origin of the hint: a path in sysfs, or ``podresapi:`` and a name.
        cpus: The near CPUs; empty if only the nodes are known.
        nodes: The near nodes; empty if only the CPUs are known.
        packages: Ids of the near packages, if nothing finer is known.
    """

    provider: str
    cpus: CpuSet = NO_CPUS
    nodes: NodeSet = NO_NODES
    packages: frozenset[int] = frozenset()

    @property
    def is_pod_resource(self) -> bool:
        """True if it comes from the kubelet, for a device assigned to the pod."""
        return self.provider.startswith(_POD_RESOURCE)


def gives_hint(source: str, destination: str, *, read_only: bool) -> bool:
    """Return whether the location of a mount matters to the container's work.

    *source* is its path on the host, *destination* that in the container.
    """
    # Most mounts are parts of every pod, so these are checked first.
    if read_only or destination.startswith(_COMMON) or source.startswith(_COMMON):
        return False
    return _SMALL_VOLUME.search(source) is None


def pod_resource_hints(devices: Mapping[str, NodeSet]) -> tuple[Hint, ...]:
    """Make hints of the nodes that the kubelet reports for devices.

    Args:
        devices: Nodes by the name of a device, such as its resource and id.
    """
    return tuple(
        Hint(f"{_POD_RESOURCE}{name}", nodes=nodes) for name, nodes in devices.items()
    )


def complete_hints(hints: Iterable[Hint], machine: Machine) -> tuple[Hint, ...]:
    """Return the first hint of each provider, with both its CPUs and its nodes.

    Hints without information are left out: those whose CPUs and nodes are not online,
    and those near all CPUs, such as PCI devices at an unknown location.
    """
    completed: dict[str, Hint] = {}
    for hint in hints:
        known = hint.cpus
        if hint.packages and not known and not hint.nodes:
            found = (one for one in machine.packages if one.id in hint.packages)
            known = CpuSet.union(one.cpus for one in found)
        nodes = hint.nodes & machine.node_ids or machine.nodes_of(known)
        cpus = known & machine.online or machine.cpus_of(nodes)
        # The kernel reports all CPUs for a PCI device at an unknown location.
        if nodes and cpus != machine.online:
            completed.setdefault(hint.provider, Hint(hint.provider, cpus, nodes))
    return tuple(completed.values())
