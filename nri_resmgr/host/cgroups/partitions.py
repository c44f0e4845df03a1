"""Makes and ends partitions of cgroup v2."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.isolation.partitions import (
    EXCLUSIVE,
    MEMBER,
    NO_FILE,
    PARTITION,
    PartitionWish,
    bottom_up,
    explained,
    folders_above,
    handed_down,
    read_partition,
    shared_value,
)
from nri_resmgr.host.boot_journal import BootJournal
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.host.cgroups.reclaim_threads import ReclaimThreads
from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.knobs.files import WritableTree, is_knob
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import CgroupLayout
from nri_resmgr.values import NO_CPUS, CpuSet, StoredValue

NAME: Final = "partitions"

_RELEASE: Final = "/proc/sys/kernel/osrelease"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_FIRST: Final = (6, 7)  # with cpuset.cpus.exclusive

# A cgroup that was removed, and a file of a removed one that is still open.
_GONE: Final = frozenset({errno.ENOENT, errno.ENODEV})

_REFUSED: Final = {
    errno.EINVAL: (
        "a cgroup beside it has some of these CPUs in cpuset.cpus.exclusive, or only "
        "these in cpuset.cpus"
    ),
    errno.EROFS: "mount /sys/fs/cgroup writable into the daemon",
    errno.EACCES: "the daemon has to run as root of the host",
    errno.EPERM: "the daemon has to run as root of the host",
}


class Added(StoredValue, frozen=True):
    """CPUs that this program has added to ``cpuset.cpus.exclusive`` of a cgroup.

    Attributes:
        is_partition: Whether it has made the cgroup a partition, too.
    """

    cpus: CpuSet = NO_CPUS
    is_partition: bool = False


NOTHING_ADDED: Final = Added()
"""Nothing was added."""


class PartitionJournal(BootJournal[dict[str, Added]]):
    """Additions to cgroups, by folder, in the order of writing."""

    name = NAME
    title = "nri-resmgr partitions"
    key = "added"
    kind = dict[str, Added]

    def __init__(self, state: StateDir, boot: str) -> None:
        super().__init__(state, boot, {})

    def check(self, originals: dict[str, Added]) -> None:
        """See `BootJournal.check`: no path may lead out of the cgroups."""
        for folder in originals:
            if not is_knob(folder) or not folder.startswith(f"{CGROUP_ROOT}/"):
                raise ValueError(folder)


class PartitionResult(msgspec.Struct, frozen=True):
    """Outcome for one container.

    Attributes:
        is_valid: Whether the kernel keeps all other processes off its CPUs.
        why: Why not; empty for a valid one.
    """

    is_valid: bool
    why: str = ""


IN_FORCE: Final = PartitionResult(is_valid=True)


class PartitionWriter:
    """Makes partitions of containers' cgroups, and ends them. One caller at a time.

    CPUs that it adds to the cgroups above are journaled before they are written, and
    removed with the last partition that needs them; those of other programs stay.

    Args:
        journal: None to keep them in memory only.

    Attributes:
        reclaim: Threads of the kernel that each change would drive from their nodes.

    Raises:
        StateUnusable: The journal cannot be read.
    """

    def __init__(self, tree: WritableTree, journal: PartitionJournal | None) -> None:
        self._tree = tree
        self._journal = journal
        self.reclaim = ReclaimThreads(tree)
        # A copy: it changes below, and the journal may return an object of its own.
        self._added = dict(journal.read()) if journal else {}

    @property
    def is_idle(self) -> bool:
        """True if nothing is added to any cgroup."""
        return not self._added

    def apply(self, wishes: Iterable[PartitionWish]) -> Mapping[str, PartitionResult]:
        """Make these partitions, and end all others of this program.

        CPUs are taken before they are given, so that two containers may swap theirs.
        One that only grows or shrinks stays in force meanwhile. One that the kernel
        refuses is undone, so that its cgroups are as before.

        Returns:
            The outcome by container.

        Raises:
            HostError: A file cannot be read, or the journal not written.
        """
        wanted = {wish.folder: wish for wish in wishes}
        found: dict[str, PartitionResult] = {}
        try:
            self._take(wanted)
            for wish in wanted.values():
                found[wish.container] = result = self._make(wish)
                if not result.is_valid:
                    # It is undone without the wish, or the CPUs would stay above it.
                    self._take({k: w for k, w in wanted.items() if k != wish.folder})
        finally:
            self._write_journal()
        self.reclaim.settle()
        return found

    def look(self, wishes: Iterable[PartitionWish]) -> Mapping[str, PartitionResult]:
        """Read whether partitions are still in force; change nothing.

        Raises:
            HostError: A file cannot be read.
        """
        return {wish.container: self._result(wish) for wish in wishes}

    def _take(self, wanted: Mapping[str, PartitionWish]) -> None:
        """Take CPUs that are not wanted any more, bottom up."""
        below = handed_down(wanted.values())
        for folder in bottom_up(self._added):
            if self._added[folder].is_partition:
                wish = wanted.get(folder)
                self._shrink_partition(folder, wish.cpus if wish else NO_CPUS)
            else:
                self._shrink(folder, below.get(folder, NO_CPUS))

    def _shrink_partition(self, folder: str, wanted: CpuSet) -> None:
        """Leave a partition only the CPUs that are wanted; end it without any."""
        state = read_partition(self._tree.read(f"{folder}/{PARTITION}"))
        keep = self._added[folder].cpus & wanted
        # An invalid one as well: at least Linux 6.12 hides its CPUs from all cgroups
        # until its cgroup is a member again, and for ever once it is removed.
        if state.kind not in ("", MEMBER) and not (keep and state.is_valid):
            self._write(f"{folder}/{PARTITION}", MEMBER)
        self._shrink(folder, keep)

    def _shrink(self, folder: str, wanted: CpuSet) -> None:
        """Leave only those of the added CPUs of a cgroup that are wanted."""
        added = self._added[folder]
        keep = added.cpus & wanted
        if keep and keep == added.cpus:
            return
        present = self._exclusive(folder)
        if present is not None:
            keep &= present
            value, _ = shared_value(present, added.cpus, keep)
            if self._set(folder, present, value):
                return  # it is tried again by the next call
        if present is None or not keep:
            del self._added[folder]
        else:
            self._added[folder] = Added(keep, added.is_partition)

    def _make(self, wish: PartitionWish) -> PartitionResult:
        folder, path = wish.folder, f"{wish.folder}/{PARTITION}"
        state = read_partition(self._tree.read(path))
        present = self._exclusive(folder)
        if present is None:
            return _failed(NO_FILE if state.kind else explained(state))
        for above in folders_above(folder, wish.top):
            if why := self._grow(above, wish.cpus):
                return _failed(why)
        self._note(folder, Added(wish.cpus, is_partition=True))
        # Nothing else is in this file: the cgroup is the container's own.
        if why := self._set(folder, present, wish.cpus):
            return _failed(why)
        if not state.is_in_force(wish.kind) and (why := self._write(path, wish.kind)):
            return _failed(why)
        return self._result(wish)

    def _grow(self, folder: str, wanted: CpuSet) -> str:
        """Add CPUs to those that a cgroup hands down; return why that failed."""
        present = self._exclusive(folder)
        if present is None:
            return f"there is no {folder}/{EXCLUSIVE}"
        # A process may have been killed between its journal and the write, and others
        # may have these CPUs since: written with them, *wanted* would be refused.
        before = self._added.get(folder, NOTHING_ADDED).cpus & present
        value, added = shared_value(present, before, before | wanted)
        if added:
            self._note(folder, Added(added))
        return self._set(folder, present, value)

    def _note(self, folder: str, added: Added) -> None:
        if self._added.get(folder) != added:
            self._added[folder] = added
            self._write_journal()

    def _set(self, folder: str, present: CpuSet, value: CpuSet) -> str:
        if value == present:
            return ""
        return self._write(f"{folder}/{EXCLUSIVE}", str(value))

    def _result(self, wish: PartitionWish) -> PartitionResult:
        path = f"{wish.folder}/{PARTITION}"
        state = read_partition(self._tree.read(path))
        if state.is_in_force(wish.kind):
            has = self._exclusive(wish.folder)
            if has == wish.cpus:
                return IN_FORCE
            return _failed(f"{wish.folder}/{EXCLUSIVE} is {has}, not {wish.cpus}")
        return _failed(f"{path}: {explained(state)}")

    def _exclusive(self, folder: str) -> CpuSet | None:
        return optional_cpus(self._tree, f"{folder}/{EXCLUSIVE}")

    def _write(self, path: str, text: str) -> str:
        """Write a file; return why that failed, empty also if its cgroup is gone."""
        try:
            self._tree.write(path, text)
        except OSError as error:
            number = error.errno or 0
            if number in _GONE:
                return ""  # the state that is read afterwards says so
            why = f"cannot write {text!r} to {path}: {os.strerror(number).lower()}"
            hint = _REFUSED.get(number, "")
            return f"{why}; {hint}" if hint else why
        return ""

    def _write_journal(self) -> None:
        if self._journal is not None:
            self._journal.write(dict(self._added))


def _failed(why: str) -> PartitionResult:
    return PartitionResult(is_valid=False, why=why)


def why_no_partitions(tree: Tree) -> str:
    """Return why this host can have no partitions; empty if it can.

    Distributions bring ``cpuset.cpus.exclusive`` to older kernels, so the number of the
    kernel only counts where no cgroup has a cpuset yet.

    Raises:
        HostError: A file cannot be read.
    """
    layout = read_cgroup_layout(tree)
    if layout is None:
        return "cgroups are not mounted at /sys/fs/cgroup"
    if layout is not CgroupLayout.V2:
        return f"this host has cgroup {layout.value}; partitions need cgroup v2"
    for name in tree.names(CGROUP_ROOT):
        folder = f"{CGROUP_ROOT}/{name}"
        if tree.read(f"{folder}/{EXCLUSIVE}") is not None:
            return ""
        if tree.read(f"{folder}/{PARTITION}") is not None:
            return NO_FILE
    release = tree.read(_RELEASE) or ""
    match = _VERSION.match(release)
    if match is None or (int(match[1]), int(match[2])) >= _FIRST:
        return ""
    return f"partitions need Linux 6.7, this is {release}"
