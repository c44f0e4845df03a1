"""Limits of misc resources: the first set by the runtime, the others by this daemon."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.app.classes.setter import NewContainer, NotSetOnHost
from nri_resmgr.app.classes.unified import check_version
from nri_resmgr.classes.memory import (
    misc_files,
    misc_limits,
    read_capacity,
)
from nri_resmgr.classes.unified import Unified, as_unified
from nri_resmgr.host.cgroups.layout import MISC_CAPACITY
from nri_resmgr.host.cgroups.writes import write_cgroup_files
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.remembered import RememberedTree


def misc_unified(
    annotations: Mapping[str, str],
    container: str,
    tree: RememberedTree | None,
    title: str,
) -> Unified:
    """Return the limits of a container, divided between the runtime and this daemon.

    The runtime sets the first: it may write the file at once, and the kernel accepts
    one line. `write_rest` writes the others.

    Raises:
        ResmgrError: A limit is invalid, or the host does not count the resource.
    """
    limits = misc_limits(annotations, container)
    if not limits:
        return Unified({}, {})
    check_version(("misc.max",), tree, title)  # else no resource would seem counted
    known = tuple(limits)
    if tree is not None:
        known = read_capacity(tree.read(MISC_CAPACITY))
        if not limits.keys() <= set(known):
            # A driver may have come, such as KVM's for encrypted machines.
            known = read_capacity(tree.read_again(MISC_CAPACITY))
    return as_unified(misc_files(limits, known, title), by_line=False)


def write_rest(new: NewContainer, tree: RememberedTree | None) -> None:
    """Write the limits that the runtime has not set, before the container starts.

    Raises:
        NotSetOnHost: Its cgroup is not found, or the kernel refuses a limit.
    """
    if tree is None:
        return
    spec = new.spec
    rest = misc_unified(new.pod.annotations, spec.name, tree, spec.title).rest
    if not rest:
        return
    what = f"{spec.title} cannot be limited as its annotations say"
    place = new.cgroup(tree.live)
    if place is None:
        raise NotSetOnHost(what, f"it has no cgroup {spec.cgroup}".rstrip())
    failed = write_cgroup_files(WritableHostTree(tree.root), place.scope, rest)
    if failed:
        raise NotSetOnHost(what, "; ".join(map(str, failed)))
