"""Scheduling classes written by this daemon, where the runtime does not set them."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.app.classes.setter import NewContainer
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.scheduling import (
    forget_io_priority,
    set_io_priority,
    set_scheduler,
)
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.scheduling import SchedulingClass
from nri_resmgr.values import HostError


@dataclass(eq=False)
class SchedulingNotSet(HostError):
    """The scheduling class of a container cannot be set.

    Attributes:
        title: The container, for messages.
        why: What failed.
    """

    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.title}: {self.why}"


def set_by_host(
    new: NewContainer, scheduling: SchedulingClass, tree: Tree | None
) -> None:
    """Set a scheduling class on the processes of a container that is about to start.

    The runtime has made the cgroup, with a process in it that will execute the
    container's. Its scheduling holds from the first instruction on, and its children
    inherit it.

    Args:
        new: The container.
        scheduling: The class; what it does not mention stays as it is.
        tree: The host; None without one.

    Raises:
        SchedulingNotSet: Nothing has been set.
    """
    spec = new.spec
    why = "there is no host to set it on"
    if tree is not None:
        try:
            place = CgroupFinder(tree).find(spec.id, spec.cgroup, new.container.pid)
            if place and _set(tree, place.scope, scheduling):
                return
            why = f"there is no process in its cgroup {spec.cgroup}".rstrip()
        except HostError as error:
            why = str(error)
    raise SchedulingNotSet(spec.title, why)


def _set(tree: Tree, folder: str, scheduling: SchedulingClass) -> int:
    # All or nothing: I/O priority first, which can be taken back without privileges.
    count = set_io_priority(tree, folder, scheduling)
    try:
        return count + set_scheduler(tree, folder, scheduling)
    except HostError:
        forget_io_priority(tree, folder, scheduling)
        raise
