"""Files of cgroup v2 into what the runtime is told."""

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

ToldT = TypeVar("ToldT", ContainerAdjustment, ContainerUpdate)


@dataclass(eq=False)
class NoSuchCgroupFiles(HostError):
    """A container asks for what only cgroups of version 2 have.

    Attributes:
        title: The container, for people.
        files: What would be written.
    """

    title: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {', '.join(self.files)} by its annotations, which "
            "cgroups of version 1 do not have; to help, leave them out, or start this "
            "node with version 2 (systemd.unified_cgroup_hierarchy=1)"
        )


def check_version(files: Collection[str], tree: Tree | None, title: str) -> None:
    """Check that a host has the files of cgroup v2 that a container asks for.

    Args:
        files: Their names; may be none.
        tree: The host; None where there is nothing to look up.
        title: The container, for people.

    Raises:
        NoSuchCgroupFiles: Its cgroups are of version 1.
    """
    if not files or tree is None:
        return
    # What cannot be told is left for the runtime to judge.
    if read_cgroup_layout(tree) in (CgroupLayout.V1, CgroupLayout.HYBRID):
        raise NoSuchCgroupFiles(title, tuple(files))


def with_unified(told: ToldT, files: Mapping[str, str]) -> ToldT:
    """Add files that nobody has set yet.

    Several kinds of classes set files. Who names a file itself, by an annotation, is
    asked first, and no later kind changes what it says.

    Args:
        told: What the runtime is told so far.
        files: Text by name, as ``{"memory.high": "536870912"}``.
    """
    taken = told.resources.unified
    for name, text in files.items():
        if name not in taken:
            told = told.set_unified(name, text)
    return told
