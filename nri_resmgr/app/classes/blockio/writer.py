"""Writes block I/O files into the cgroups of running containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.app.classes.members import Member
from nri_resmgr.classes.blockio import BlockIoConfig, Files, changed_files
from nri_resmgr.classes.unified import as_unified
from nri_resmgr.host.cgroup_writes import write_cgroup_files
from nri_resmgr.host.container_cgroups import CgroupReference
from nri_resmgr.host.container_places import Places
from nri_resmgr.host.knob_files import WritableTree
from nri_resmgr.values import HostError


class BlockIoWriter:
    """Writes files of cgroups; for a thread.

    Args:
        tree: The host; None where there is none to write to.
        host: Knows the classes, and keeps which container has which.

    Attributes:
        host: The same.
    """

    def __init__(self, tree: WritableTree | None, host: BlockIoHost) -> None:
        self._tree = tree
        self.host = host

    def put(
        self, config: BlockIoConfig, members: Iterable[Member]
    ) -> dict[str, Mapping[str, str]]:
        """Write the files of containers whose classes have changed.

        Args:
            config: The classes; empty where there are none any more.
            members: The containers.

        Returns:
            What has to be sent to the runtime, by the container's id: it would write
            old values again with its next update.
        """
        classes = self.host.look(config)
        news = {}
        for member in members:
            one, features = classes.get(member.name), self.host.features
            new = one.files(features) if one else {}
            old = self.host.given.get(member.reference.id, {})
            lines = changed_files(old, new, features)
            if lines and not self._write(member, lines):
                continue
            self.host.give(member.reference.id, new)
            if lines:
                news[member.reference.id] = as_unified(lines, by_line=False).values
        return news if self.host.features.is_v2 else {}

    def write_rest(self, reference: CgroupReference, title: str) -> None:
        """Write what could not be sent to the runtime of a new container."""
        lines = self.host.rest.pop(reference.id, None)
        if lines is not None:
            self._write(Member(reference, title, "", None), lines)

    def _write(self, member: Member, lines: Files) -> bool:
        tree, problems = self._tree, self.host.problems
        if tree is None:
            return False
        try:
            folder = self._folder(tree, member.reference)
        except HostError as error:
            problems.fail(member.title, str(error))
            return False
        if not folder:
            return False  # it does not run
        failed = write_cgroup_files(tree, folder, lines)
        if failed:
            problems.fail(member.title, "; ".join(map(str, failed)))
            return False
        problems.clear(member.title)
        return True

    def _folder(self, tree: WritableTree, reference: CgroupReference) -> str:
        """Find the cgroup; version 1 has the same path below another root."""
        place = Places(tree).find(reference.id, reference.path, reference.pid)
        if place is None:
            return ""
        if self.host.features.is_v2:
            return place.cpuset
        return self.host.top + place.cpuset.removeprefix(place.top)
