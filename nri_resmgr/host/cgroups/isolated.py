"""Reads the cgroups of isolated containers and checks that isolation is effective."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.classes.isolation.cgroup_files import (
    CgroupPaths,
    IsolatedCgroup,
    ineffective_isolation,
    load_balance_state,
)
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.host.cgroups.finder import CgroupFinder, CgroupFolders
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import CpuSet


class IsolatedCgroups:
    """Finds and reads cgroups of isolated containers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._finder = CgroupFinder(tree)

    def find(self, isolated: Iterable[Isolated]) -> tuple[IsolatedCgroup, ...]:
        """Return the cgroups of containers whose isolation sets cgroup files.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        return tuple(
            (self._cgroup(place), one)
            for one in isolated
            if one.request.is_about_cgroups
            and (place := self._finder.find(one.container, one.cgroup, one.pid))
        )

    def ineffective(
        self, placed: Iterable[IsolatedCgroup], isolated: CpuSet
    ) -> tuple[tuple[Isolated, str], ...]:
        """Return containers whose CPUs the scheduler still balances, with the reason.

        All files have to be written before; *isolated* are the CPUs of ``isolcpus=``.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        unbalanced = [pair for pair in placed if pair[1].request.unbalanced]
        paths = {path for place, _ in unbalanced for path in load_balance_state(place)}
        present = {path: self._tree.read(path) for path in sorted(paths)}
        return tuple(ineffective_isolation(unbalanced, isolated, present))

    def _cgroup(self, place: CgroupFolders) -> CgroupPaths:
        is_v2 = self._finder.is_v2
        exclusive = f"{place.cpuset}/cpuset.cpus.exclusive"
        return CgroupPaths(
            tuple(
                dict.fromkeys((*_pod_of(place.cpu_scope), place.cpu_scope, place.cpu))
            ),
            place.cpuset,
            place.top,
            is_v2,
            not is_v2 or self._tree.read(exclusive) is not None,
        )


def _pod_of(folder: str) -> tuple[str, ...]:
    """Return the parent if it is a pod of the kubelet: others may share any other."""
    above = folder.rpartition("/")[0]
    name = above.rpartition("/")[2]
    return (above,) if name.startswith("pod") or "-pod" in name else ()
