"""Writer of block I/O files in the cgroups of containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.app.classes.members import Member
from nri_resmgr.classes.blockio import BlockIoConfig, Files, changed_files
from nri_resmgr.classes.unified import as_unified
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.writes import write_cgroup_files
from nri_resmgr.host.knobs.files import WritableHostTree, WritableTree
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.values import HostError


class BlockIoWriter:
    """Writes files of cgroups; in a thread."""

    def __init__(self, tree: WritableTree | None, host: BlockIoHost) -> None:
        self._tree = tree
        self.host = host

    @classmethod
    def of(cls, tree: Tree | None) -> BlockIoWriter:
        """Make a writer, and the state of the classes, for a host; None without one."""
        # A recorded host cannot be written to.
        files = WritableHostTree(tree.root) if isinstance(tree, HostTree) else None
        return cls(files, BlockIoHost(tree))

    def write(
        self, config: BlockIoConfig, members: Iterable[Member]
    ) -> dict[str, Mapping[str, str]]:
        """Write the files of containers whose classes have changed.

        Returns:
            The files to send to the runtime, by container id: otherwise it restores
            the old values with its next update.
        """
        classes = self.host.look(config)
        changes = {}
        for member in members:
            one, features = classes.get(member.name), self.host.features
            new = one.files(features) if one else {}
            old = self.host.applied.get(member.reference.id, {})
            lines = changed_files(old, new, features)
            if lines and not self._write(member, lines):
                continue
            self.host.note_applied(member.reference.id, new)
            if lines:
                changes[member.reference.id] = as_unified(lines, by_line=False).values
        return changes if self.host.features.is_v2 else {}

    def write_rest(self, reference: CgroupReference, title: str) -> None:
        """Write the lines of a new container that its runtime cannot write."""
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
        """Return the cgroup's folder; v1 has the same path below another root."""
        place = CgroupFinder(tree).find(reference.id, reference.path, reference.pid)
        if place is None:
            return ""
        if self.host.features.is_v2:
            return place.cpuset
        return self.host.top + place.cpuset.removeprefix(place.top)
