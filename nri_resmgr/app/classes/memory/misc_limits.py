"""Limits of misc resources: the first set by the runtime, the others by this daemon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nri_resmgr.app.classes.setter import NewContainer
from nri_resmgr.app.classes.unified import check_version
from nri_resmgr.classes.memory import (
    CAPACITY_FILE,
    misc_files,
    misc_limits,
    read_capacity,
)
from nri_resmgr.classes.unified import Unified, as_unified
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT
from nri_resmgr.host.cgroups.writes import FailedWrite, write_cgroup_files
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError


@dataclass(eq=False)
class LimitsNotWritten(HostError):
    """The limits of a container cannot be written; it is not started without them.

    Attributes:
        title: The container, for messages.
        why: What failed.
    """

    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.title} cannot be limited as its annotations say: {self.why}"


def misc_unified(
    annotations: Mapping[str, str], container: str, tree: Tree | None, title: str
) -> dict[str, str]:
    """Return the limit of a container that the runtime sets.

    Args:
        annotations: Of its pod.
        container: Its name in the pod.
        tree: The host; None without one.
        title: The container, for messages.

    Returns:
        ``linux.resources.unified``, with the first limit only: runtimes may write the
        file at once, and the kernel accepts one line. `write_rest` writes the others.

    Raises:
        ResmgrError: A limit is invalid, or the host does not count the resource.
    """
    return dict(_unified(annotations, container, tree, title).values)


def write_rest(new: NewContainer, tree: Tree | None) -> None:
    """Write the limits that the runtime has not set, before the container starts.

    Args:
        new: The container.
        tree: The host; None without one.

    Raises:
        LimitsNotWritten: Its cgroup is not found, or the kernel refuses a limit.
    """
    if tree is None:
        return
    spec, title = new.spec, new.spec.title
    rest = _unified(new.pod.annotations, spec.name, tree, title).rest
    if not rest:
        return
    place = CgroupFinder(tree).find(spec.id, spec.cgroup, new.container.pid)
    if place is None:
        raise LimitsNotWritten(title, f"it has no cgroup {spec.cgroup}".rstrip())
    failed: tuple[FailedWrite, ...]
    failed = write_cgroup_files(WritableHostTree(tree.root), place.scope, rest)
    if failed:
        raise LimitsNotWritten(title, "; ".join(map(str, failed)))


def _unified(
    annotations: Mapping[str, str], container: str, tree: Tree | None, title: str
) -> Unified:
    limits = misc_limits(annotations, container)
    if not limits:
        return Unified({}, {})
    check_version(("misc.max",), tree, title)  # else no resource would seem counted
    known = tuple(limits) if tree is None else _counted(tree)
    return as_unified(misc_files(limits, known, title), by_line=False)


def _counted(tree: Tree) -> tuple[str, ...]:
    return read_capacity(tree.read(f"{CGROUP_ROOT}/{CAPACITY_FILE}"))
