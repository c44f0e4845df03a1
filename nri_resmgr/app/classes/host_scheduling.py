"""Scheduling classes written by this daemon, where the runtime does not set them."""

from __future__ import annotations

from nri_resmgr.app.classes.setter import NewContainer, NotSetOnHost
from nri_resmgr.host.scheduling import (
    forget_io_priority,
    set_io_priority,
    set_scheduler,
)
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError
from nri_resmgr.values.scheduling import SchedulingClass


def set_by_host(
    new: NewContainer, scheduling: SchedulingClass, tree: Tree | None
) -> None:
    """Set a scheduling class on the processes of a container that is about to start.

    What the class does not mention stays as it is.

    The runtime has made the cgroup, with a process in it that will execute the
    container's. Its scheduling holds from the first instruction on, and its children
    inherit it.

    Raises:
        NotSetOnHost: Nothing has been set.
    """
    why = "there is no host to set it on"
    if tree is not None:
        try:
            place = new.cgroup(tree)
            if place and _set(tree, place.scope, scheduling):
                return
            why = f"there is no process in its cgroup {new.spec.cgroup}".rstrip()
        except HostError as error:
            why = str(error)
    raise NotSetOnHost(new.spec.title, why)


def _set(tree: Tree, folder: str, scheduling: SchedulingClass) -> int:
    # All or nothing: I/O priority first, which can be taken back without privileges.
    count = set_io_priority(tree, folder, scheduling)
    try:
        return count + set_scheduler(tree, folder, scheduling)
    except HostError:
        forget_io_priority(tree, folder, scheduling)
        raise
