"""Files of cgroup v2 in adjustments and updates (``unified``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from nri_resmgr.host.cgroups.layout import read_cgroup_layout
from nri_resmgr.host.tree import Tree
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import CgroupLayout
from nri_resmgr.values import HostError

MessageT = TypeVar("MessageT", ContainerAdjustment, ContainerUpdate)


@dataclass(eq=False)
class NoSuchCgroupFiles(HostError):
    """A container asks for files that only cgroup v2 has."""

    title: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {', '.join(self.files)} by its annotations, which "
            "cgroup v1 does not have; to help, remove them, or boot this node with "
            "cgroup v2 (systemd.unified_cgroup_hierarchy=1)"
        )


def check_version(files: Collection[str], tree: Tree | None, title: str) -> None:
    """Check that a host has the files of cgroup v2 that a container asks for.

    Raises:
        NoSuchCgroupFiles: The host has cgroup v1.
    """
    if not files or tree is None:
        return
    # Where the version is unknown, the runtime refuses what it cannot set.
    if read_cgroup_layout(tree) in (CgroupLayout.V1, CgroupLayout.HYBRID):
        raise NoSuchCgroupFiles(title, tuple(files))


def with_unified(message: MessageT, files: Mapping[str, str]) -> MessageT:
    """Add files that are not set yet.

    Several kinds of classes set files. Those that an annotation names come first, and
    no later kind overrides them.
    """
    taken = message.resources.unified
    for name, text in files.items():
        if name not in taken:
            message = message.set_unified(name, text)
    return message
