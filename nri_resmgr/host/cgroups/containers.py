"""Reads the effective CPUs, memory nodes and weights of containers."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from nri_resmgr.host.cgroups.finder import CgroupFinder, CgroupFolders
from nri_resmgr.host.fields import optional_cpus, optional_nodes
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import CpuSet, NodeSet

# Effective and requested values. Old kernels with v1 have only the latter.
_EFFECTIVE_CPUS: Final = ("cpuset.cpus.effective", "cpuset.effective_cpus")
_EFFECTIVE_MEMS: Final = ("cpuset.mems.effective", "cpuset.effective_mems")
_CPUS: Final = "cpuset.cpus"
_MEMS: Final = "cpuset.mems"

_POPULATED: Final = re.compile(r"^populated 1$", re.ASCII | re.MULTILINE)


class CgroupReference(msgspec.Struct, frozen=True):
    """Identifies a container's cgroup.

    Attributes:
        id: The runtime's id.
        path: As in the OCI spec: a path, or ``slice:prefix:name``; empty if unknown.
        pid: Of its first process; 0 if unknown.
    """

    id: str
    path: str = ""
    pid: int = 0


class EffectiveResources(msgspec.Struct, frozen=True):
    """Values that are in force for a container; None where the kernel reports none.

    Attributes:
        shares: ``cpu.shares`` of v1, if weights were to be read.
        weights: Each ``cpu.weight`` of v2 that applies to it, likewise.
        folder: Its cgroup with the cpuset files.
    """

    cpus: CpuSet | None = None
    mems: NodeSet | None = None
    shares: int | None = None
    weights: tuple[int, ...] = ()
    folder: str = ""


class RequestedCpuset(msgspec.Struct, frozen=True):
    """Values that were written to a cgroup, in force or not; None if none were."""

    cpus: CpuSet | None
    mems: NodeSet | None


class ContainerCgroups:
    """Reads cgroups of containers; caches where they are.

    Reading a file takes a few microseconds; from an event loop, use a thread.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._finder = CgroupFinder(tree)
        self.is_v2 = self._finder.is_v2
        at = 0 if self.is_v2 else 1
        self._cpus, self._mems = _EFFECTIVE_CPUS[at], _EFFECTIVE_MEMS[at]
        self._places: dict[str, CgroupFolders] = {}

    def read(
        self, reference: CgroupReference, *, weighed: bool = False, afresh: bool = False
    ) -> EffectiveResources | None:
        """Read the values that are in force for a container; None if it does not run.

        With *afresh*, its cgroup is searched again even if its place is cached.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
            BadHostFile: A file has an invalid value.
        """
        place = None if afresh else self._places.get(reference.id)
        found = None if place is None else self._read(place, weighed=weighed)
        if found is not None:
            return found
        self._places.pop(reference.id, None)
        place = self._finder.find(reference.id, reference.path, reference.pid)
        if place is None:
            return None
        self._places[reference.id] = place
        return self._read(place, weighed=weighed)

    def requested(self, reference: CgroupReference) -> RequestedCpuset:
        """Read what was written to the cgroup that `read` found last.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
            BadHostFile: A file has an invalid value.
        """
        place = self._places.get(reference.id)
        if place is None:
            return RequestedCpuset(None, None)
        cpus = optional_cpus(self._tree, f"{place.cpuset}/{_CPUS}")
        mems = optional_nodes(self._tree, f"{place.cpuset}/{_MEMS}")
        return RequestedCpuset(cpus or None, mems or None)

    def has_processes(self, reference: CgroupReference) -> bool:
        """Return whether the cgroup that `read` found last has processes.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        place = self._places.get(reference.id)
        if place is None:
            return False
        if self.is_v2:
            return bool(_POPULATED.search(self._text(f"{place.scope}/cgroup.events")))
        return bool(self._text(f"{place.cpuset}/cgroup.procs"))

    def keep_only(self, containers: Collection[str]) -> None:
        """Discard the cached places of all other containers."""
        for key in self._places.keys() - set(containers):
            # A reader in another thread may have removed it.
            self._places.pop(key, None)

    def _read(
        self, place: CgroupFolders, *, weighed: bool
    ) -> EffectiveResources | None:
        folder, cpus = self._with_cpus(place)
        if cpus is None:
            return None
        mems = optional_nodes(self._tree, f"{folder}/{self._mems}")
        if mems is None and not self.is_v2:
            mems = optional_nodes(self._tree, f"{folder}/{_MEMS}")
        shares, weights = self._weights(place) if weighed else (None, ())
        return EffectiveResources(cpus, mems, shares, weights, place.cpuset)

    def _with_cpus(self, place: CgroupFolders) -> tuple[str, CpuSet | None]:
        """Find the CPUs; without the controller those of an ancestor are in force."""
        folder = place.cpuset
        while True:
            cpus = optional_cpus(self._tree, f"{folder}/{self._cpus}")
            if cpus is None and not self.is_v2:
                cpus = optional_cpus(self._tree, f"{folder}/{_CPUS}")
            if cpus is not None or folder == place.top:
                return folder, cpus
            if self._tree.read(f"{place.cpuset}/cgroup.procs") is None:
                return folder, None
            folder = folder.rpartition("/")[0]

    def _weights(self, place: CgroupFolders) -> tuple[int | None, tuple[int, ...]]:
        if not self.is_v2:
            return _number(self._text(f"{place.cpu}/cpu.shares")), ()
        folders = dict.fromkeys((place.cpu, place.cpu_scope))
        found = [_number(self._text(f"{one}/cpu.weight")) for one in folders]
        return None, tuple(one for one in found if one is not None)

    def _text(self, path: str) -> str:
        return self._tree.read(path) or ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
