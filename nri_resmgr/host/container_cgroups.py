"""What the kernel has in force for containers, read from their cgroups."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.host.container_places import Place, Places
from nri_resmgr.host.tree import BadHostFile, Tree
from nri_resmgr.values import BadListFormat, CpuSet, NodeSet

# What holds, and what was asked for. Version 1 of old kernels has the latter only.
_EFFECTIVE_CPUS: Final = ("cpuset.cpus.effective", "cpuset.effective_cpus")
_EFFECTIVE_MEMS: Final = ("cpuset.mems.effective", "cpuset.effective_mems")
_CPUS: Final = "cpuset.cpus"
_MEMS: Final = "cpuset.mems"

_POPULATED: Final = re.compile(r"^populated 1$", re.ASCII | re.MULTILINE)


class CgroupReference(msgspec.Struct, frozen=True):
    """What is known of where a container's cgroup is.

    Attributes:
        id: The runtime's id.
        path: As in the OCI spec: a path, or ``slice:prefix:name``; empty if untold.
        pid: Of its first process; 0 if untold.
    """

    id: str
    path: str = ""
    pid: int = 0


class InForce(msgspec.Struct, frozen=True):
    """What a container runs with; None stands for what the kernel does not tell.

    Attributes:
        cpus: CPUs that its processes may run on.
        mems: Memory nodes that they may use.
        shares: ``cpu.shares`` of version 1, where that was to be read.
        weights: Each ``cpu.weight`` of version 2 that counts for it, likewise.
        folder: Its cgroup, where the CPUs are from.
    """

    cpus: CpuSet | None = None
    mems: NodeSet | None = None
    shares: int | None = None
    weights: tuple[int, ...] = ()
    folder: str = ""


class AskedFor(msgspec.Struct, frozen=True):
    """What was written into a cgroup, whatever came of it; None if nothing was.

    Attributes:
        cpus: CPUs.
        mems: Memory nodes.
    """

    cpus: CpuSet | None
    mems: NodeSet | None


class ContainerCgroups:
    """Reads cgroups of containers, and remembers where they are.

    It reads files, a few microseconds each; an event loop does that in a thread.

    Args:
        tree: The host.

    Attributes:
        is_v2: Whether they are of version 2.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._finder = Places(tree)
        self.is_v2 = self._finder.is_v2
        at = 0 if self.is_v2 else 1
        self._cpus, self._mems = _EFFECTIVE_CPUS[at], _EFFECTIVE_MEMS[at]
        self._places: dict[str, Place] = {}

    def read(
        self, whom: CgroupReference, *, weighed: bool = False, afresh: bool = False
    ) -> InForce | None:
        """Read what is in force for a container.

        Args:
            whom: The container.
            weighed: Read its weight, too.
            afresh: Look for its cgroup even if it was there before.

        Returns:
            None where there is no such cgroup: it does not run.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
            BadHostFile: A file holds something else than it should.
        """
        place = None if afresh else self._places.get(whom.id)
        found = None if place is None else self._read(place, weighed=weighed)
        if found is not None:
            return found
        self._places.pop(whom.id, None)
        place = self._finder.find(whom.id, whom.path, whom.pid)
        if place is None:
            return None
        self._places[whom.id] = place
        return self._read(place, weighed=weighed)

    def asked_for(self, whom: CgroupReference) -> AskedFor:
        """Read what was written into the cgroup that was read last.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
            BadHostFile: A file holds something else than it should.
        """
        place = self._places.get(whom.id)
        if place is None:
            return AskedFor(None, None)
        cpus = _cpu_list(f"{place.cpuset}/{_CPUS}", self._tree)
        mems = _node_list(f"{place.cpuset}/{_MEMS}", self._tree)
        return AskedFor(cpus or None, mems or None)

    def has_processes(self, whom: CgroupReference) -> bool:
        """Tell whether anything runs in the cgroup that was read last.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        place = self._places.get(whom.id)
        if place is None:
            return False
        if self.is_v2:
            return bool(_POPULATED.search(self._text(f"{place.scope}/cgroup.events")))
        return bool(self._text(f"{place.cpuset}/cgroup.procs"))

    def keep_only(self, containers: Collection[str]) -> None:
        """Forget where the others were."""
        for key in self._places.keys() - set(containers):
            # A reader in another thread may have been first.
            self._places.pop(key, None)

    def _read(self, place: Place, *, weighed: bool) -> InForce | None:
        folder, cpus = self._with_cpus(place)
        if cpus is None:
            return None
        mems = _node_list(f"{folder}/{self._mems}", self._tree)
        if mems is None and not self.is_v2:
            mems = _node_list(f"{folder}/{_MEMS}", self._tree)
        shares, weights = self._weights(place) if weighed else (None, ())
        return InForce(cpus, mems, shares, weights, place.cpuset)

    def _with_cpus(self, place: Place) -> tuple[str, CpuSet | None]:
        """Find the CPUs; without the controller those of a cgroup above hold."""
        folder = place.cpuset
        while True:
            cpus = _cpu_list(f"{folder}/{self._cpus}", self._tree)
            if cpus is None and not self.is_v2:
                cpus = _cpu_list(f"{folder}/{_CPUS}", self._tree)
            if cpus is not None or folder == place.top:
                return folder, cpus
            if self._tree.read(f"{place.cpuset}/cgroup.procs") is None:
                return folder, None
            folder = folder.rpartition("/")[0]

    def _weights(self, place: Place) -> tuple[int | None, tuple[int, ...]]:
        if not self.is_v2:
            return _number(self._text(f"{place.cpu}/cpu.shares")), ()
        folders = dict.fromkeys((place.cpu, place.cpu_scope))
        found = [_number(self._text(f"{one}/cpu.weight")) for one in folders]
        return None, tuple(one for one in found if one is not None)

    def _text(self, path: str) -> str:
        return self._tree.read(path) or ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _cpu_list(path: str, tree: Tree) -> CpuSet | None:
    text = tree.read(path)
    try:
        return None if text is None else _cpus_of(text)
    except BadListFormat as error:
        raise BadHostFile(path, str(error)) from error


def _node_list(path: str, tree: Tree) -> NodeSet | None:
    text = tree.read(path)
    try:
        return None if text is None else _nodes_of(text)
    except BadListFormat as error:
        raise BadHostFile(path, str(error)) from error


# Those who share have the same, and so have all who do not in the next round.
_cpus_of: Final = lru_cache(maxsize=4096)(CpuSet.parse)
_nodes_of: Final = lru_cache(maxsize=1024)(NodeSet.parse)
