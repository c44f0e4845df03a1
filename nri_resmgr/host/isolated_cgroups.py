"""The cgroups of isolated containers, and what came of isolating them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.classes.isolation.cgroup_files import (
    CgroupFolders,
    IsolatedCgroup,
    ineffective_isolation,
    load_balance_state,
)
from nri_resmgr.classes.isolation.requests import Isolated
from nri_resmgr.host.container_places import Place, Places
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import CpuSet


class IsolatedCgroups:
    """Finds cgroups and reads them.

    Args:
        tree: The host.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._places = Places(tree)

    def find(self, isolated: Iterable[Isolated]) -> tuple[IsolatedCgroup, ...]:
        """Return the cgroups of containers that want theirs set, if they have one.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        return tuple(
            (self._cgroup(place), one)
            for one in isolated
            if one.request.is_about_cgroups
            and (place := self._places.find(one.container, one.cgroup, one.pid))
        )

    def ineffective(
        self, placed: Iterable[IsolatedCgroup], isolated: CpuSet
    ) -> tuple[tuple[Isolated, str], ...]:
        """Return containers whose CPUs are balanced all the same, with the reason.

        Args:
            placed: Those that were found, once all files are written.
            isolated: The CPUs of ``isolcpus=``.

        Raises:
            UnreadableHostFile: A file is there and cannot be read.
        """
        wishing = [pair for pair in placed if pair[1].request.unbalanced]
        paths = {path for place, _ in wishing for path in load_balance_state(place)}
        present = {path: self._tree.read(path) for path in sorted(paths)}
        return tuple(ineffective_isolation(wishing, isolated, present))

    def _cgroup(self, place: Place) -> CgroupFolders:
        is_v2 = self._places.is_v2
        exclusive = f"{place.cpuset}/cpuset.cpus.exclusive"
        return CgroupFolders(
            tuple(dict.fromkeys((*_pod_of(place.cpu_scope), *_folders(place)))),
            place.cpuset,
            place.top,
            is_v2,
            not is_v2 or self._tree.read(exclusive) is not None,
        )


def _folders(place: Place) -> Iterator[str]:
    yield place.cpu_scope
    yield place.cpu


def _pod_of(folder: str) -> tuple[str, ...]:
    """Return the folder above if it is a pod's of the kubelet: it may be anybody's."""
    above = folder.rpartition("/")[0]
    name = above.rpartition("/")[2]
    return (above,) if name.startswith("pod") or "-pod" in name else ()
