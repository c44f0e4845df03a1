"""Scheduling classes by the host, where the runtime does not set them."""

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
    """The processes of a container cannot be scheduled as its class says.

    Attributes:
        title: The container, for people.
        why: What failed.
    """

    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.title}: {self.why}"


def set_by_host(
    begun: NewContainer, scheduling: SchedulingClass, tree: Tree | None
) -> None:
    """Set a class on the processes of a container that is about to start.

    The runtime has made its cgroup, with a process in it that waits to become the
    container's. What is set on that one holds from the container's first instruction
    on, and whatever it makes inherits it.

    Args:
        begun: The container.
        scheduling: What it leaves alone stays as it is.
        tree: The host; None where there is nothing to set.

    Raises:
        SchedulingNotSet: Nothing is set.
    """
    spec = begun.spec
    why = "there is no host to set it on"
    if tree is not None:
        try:
            place = CgroupFinder(tree).find(spec.id, spec.cgroup, begun.container.pid)
            if place and _set(tree, place.scope, scheduling):
                return
            why = f"there is no process in its cgroup {spec.cgroup}".rstrip()
        except HostError as error:
            why = str(error)
    raise SchedulingNotSet(spec.title, why)


def _set(tree: Tree, folder: str, scheduling: SchedulingClass) -> int:
    # All or nothing: I/O priority first, which anybody may give back.
    count = set_io_priority(tree, folder, scheduling)
    try:
        return count + set_scheduler(tree, folder, scheduling)
    except HostError:
        forget_io_priority(tree, folder, scheduling)
        raise
