"""Topology hints: where the things that a container uses sit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.topology.machine import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, NodeSet

_POD_RESOURCE: Final = "podresapi:"

# Parts of every image and of every pod: where they lie says nothing.
_COMMON: Final = (
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


class Hint(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A place that something a container uses is near to.

    Attributes:
        provider: What told so: a path in sysfs, or ``podresapi:`` and a name.
        cpus: The CPUs near it; none where only the nodes are known.
        nodes: The nodes near it; none where only the CPUs are known.
        packages: Ids of the packages near it, where nothing finer is known.
    """

    provider: str
    cpus: CpuSet = NO_CPUS
    nodes: NodeSet = NO_NODES
    packages: frozenset[int] = frozenset()

    @property
    def is_pod_resource(self) -> bool:
        """Whether the kubelet told it of a device that it gave to the pod."""
        return self.provider.startswith(_POD_RESOURCE)


def is_telling_mount(source: str, destination: str, *, read_only: bool) -> bool:
    """Tell whether the place of a mount's host path says where work is done.

    Args:
        source: The path on the host; the one whose device is looked up.
        destination: The path in the container.
        read_only: Whether the container cannot write to it.
    """
    # Most mounts are parts of every pod: those are found first.
    if read_only or destination.startswith(_COMMON) or source.startswith(_COMMON):
        return False
    return _SMALL_VOLUME.search(source) is None


def pod_resource_hints(devices: Mapping[str, NodeSet]) -> tuple[Hint, ...]:
    """Turn the nodes that the kubelet tells of devices into hints.

    Args:
        devices: A name for each device, such as resource and id, to its nodes.
    """
    return tuple(
        Hint(f"{_POD_RESOURCE}{name}", nodes=nodes) for name, nodes in devices.items()
    )


def complete_hints(hints: Iterable[Hint], machine: Machine) -> tuple[Hint, ...]:
    """Keep one hint per provider, the first, with CPUs and nodes both known.

    A hint is left out when it says nothing: nothing of it is online, or it is
    near to every CPU, as PCI devices of unknown place are.
    """
    completed: dict[str, Hint] = {}
    for hint in hints:
        known = hint.cpus
        if hint.packages and not known and not hint.nodes:
            found = (one for one in machine.packages if one.id in hint.packages)
            known = CpuSet.union(one.cpus for one in found)
        nodes = hint.nodes & machine.node_ids or machine.nodes_of(known)
        cpus = known & machine.online or machine.cpus_of(nodes)
        if nodes and cpus != machine.online:
            completed.setdefault(hint.provider, Hint(hint.provider, cpus, nodes))
    return tuple(completed.values())
