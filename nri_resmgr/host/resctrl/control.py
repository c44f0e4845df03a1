"""Applies RDT plans as groups, and restores what was there before."""

from __future__ import annotations

from collections.abc import Callable, Collection

from nri_resmgr.classes.rdt.capabilities import BandwidthMode, Capabilities
from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.mounts import find_resctrl_mount
from nri_resmgr.host.resctrl.apply import (
    apply_steps,
    make_monitor,
    remove_monitor,
    undo_all,
)
from nri_resmgr.host.resctrl.counters import Count, counts_of
from nri_resmgr.host.resctrl.discovery import (
    bandwidth_mode,
    read_capabilities,
)
from nri_resmgr.host.resctrl.errors import (
    GroupInUse,
    ResctrlNotMounted,
    UnknownGroup,
)
from nri_resmgr.host.resctrl.files import MountedResctrl, ResctrlFiles
from nri_resmgr.host.resctrl.groups import (
    checked_name,
    groups_in,
    locked,
    names_in,
    path_in,
    reading,
    survey,
)
from nri_resmgr.host.resctrl.journal import Journal, TextStore
from nri_resmgr.host.resctrl.report import ResctrlDrift, ResctrlOptions, ResctrlReport
from nri_resmgr.host.resctrl.schemata import Schemata, merged, render_schemata
from nri_resmgr.host.resctrl.snapshot import take_snapshot
from nri_resmgr.host.resctrl.steps import Steps, steps_to
from nri_resmgr.host.resctrl.threads import move_threads, tasks_in
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError


class RdtControl:
    """RDT classes as groups of a resctrl file system.

    All methods do I/O and may wait for the lock of other programs: from an event loop,
    call them in a thread. Every change is journaled first.

    Create it with `open`.
    """

    def __init__(
        self,
        files: ResctrlFiles,
        journal: Journal,
        mode: BandwidthMode = BandwidthMode.PERCENT,
        options: ResctrlOptions | None = None,
    ) -> None:
        self.files = files
        self.journal = journal
        self._mode = mode
        self._options = options or ResctrlOptions()
        self._written: dict[str, Schemata] = {}

    @classmethod
    def open(
        cls, tree: Tree, store: TextStore, options: ResctrlOptions | None = None
    ) -> RdtControl:
        """Open the resctrl file system of a host, and the journal of its changes.

        Raises:
            ResctrlNotMounted: resctrl is not mounted.
            UnreadableHostFile: The table of mounts cannot be read.
        """
        mount = find_resctrl_mount(tree)
        if mount is None:
            raise ResctrlNotMounted
        cpuinfo = tree.read("/proc/cpuinfo") or ""
        mode = bandwidth_mode(cpuinfo, in_mbps=mount.is_in_mbps)
        # After another boot or mount none of our changes is left.
        place = " ".join([boot_of(tree), mount.path, *sorted(mount.options)])
        files = MountedResctrl(tree.root + mount.path)
        return cls(files, Journal(store, place), mode, options)

    def capabilities(self) -> Capabilities:
        """Read what the machine can allocate.

        Raises:
            HostError: A file is missing, unreadable or invalid.
        """
        return read_capabilities(self.files, self._mode)

    def apply(self, plan: Plan) -> ResctrlReport:
        """Make groups match a plan, or change nothing.

        Raises:
            TooManyGroups: There are not enough closids.
            ForeignGroup: A group of another program has the name of a class.
            GroupInUse: A class to remove has threads.
            ExclusiveOverlap: A class would have bits of an exclusive group.
            BadGroupName: The name of a class is not valid for a folder.
            GroupRefused: The kernel rejected a change; nothing has changed.
            ResctrlLocked: Another program holds the lock.
            StateUnusable: The journal cannot be written; nothing has changed.
        """
        wanted = {self._folder(name): text for name, text in plan.schemata.items()}
        if plan.root is not None:
            wanted[""] = plan.root
        with locked(self.files):
            can = self.capabilities()
            snapshot = take_snapshot(self.files, self.journal, can, self._options)
            steps = steps_to(wanted, snapshot)
            self._check_idle(steps)
            report = apply_steps(steps, snapshot, self.files, self.journal)
            self._written = self._written_schemata(wanted)
        return report

    def restore(self) -> ResctrlReport:
        """Undo all changes; threads of removed groups move to the root group.

        Failures are in the report, and stay in the journal for the next call.

        Raises:
            ResctrlLocked: Another program holds the lock.
            UnreadableHostFile: The groups cannot be read.
            StateUnusable: The journal cannot be read.
        """
        with locked(self.files):
            record = self.journal.load().within(survey(self.files))
            self._written = {}
            return undo_all(self.files, self.journal, record)

    def drift(self) -> tuple[ResctrlDrift, ...]:
        """Compare groups with their schemata after `apply`.

        Raises:
            HostError: A file is unreadable or invalid.
        """
        groups = survey(self.files)
        found = []
        for name, written in self._written.items():
            present = groups[name].schemata if name in groups else None
            if present is None or merged(present, written) != present:
                now = None if present is None else render_schemata(present)
                found.append(ResctrlDrift(name, render_schemata(written), now))
        return tuple(found)

    def classes(self) -> tuple[str, ...]:
        """Return the names of all groups that can be a container's class.

        Groups of other programs are included if they have our prefix. The root group is
        not: see `ROOT_CLASS`.

        Raises:
            HostError: A file is unreadable or invalid.
        """
        prefix = self._options.prefix
        return tuple(
            name.removeprefix(prefix)
            for name, group in survey(self.files).items()
            if name and name.startswith(prefix) and not group.is_for_a_region
        )

    def has_class(self, name: str) -> bool:
        """Return whether a class has a group.

        Raises:
            UnreadableHostFile: The folder cannot be read.
        """
        # On the path of requests, so without listing the folder.
        path = path_in(self._folder(name), "tasks")
        with reading(self.files, path):
            return self.files.exists(path)
        return False

    def schemata_of(self, name: str) -> str | None:
        """Return the present schemata of a class, as in a plan; None without a group.

        Raises:
            HostError: A file is unreadable or invalid.
        """
        group = survey(self.files).get(self._folder(name))
        return None if group is None else render_schemata(group.schemata)

    def tasks(self, name: str, monitor: str = "") -> frozenset[int]:
        """Return the ids of the threads in a class, or in a monitoring group of it.

        Raises:
            UnreadableHostFile: The file cannot be read.
        """
        return tasks_in(self.files, self._path(name, monitor))

    def move(
        self, threads: Callable[[], Collection[int]], name: str, monitor: str = ""
    ) -> int:
        """Move threads to a class, until there are no new ones; return their number.

        *threads* returns the present ones, such as `threads_of` a cgroup. They move to
        the monitoring group as well, if one is given.

        Raises:
            UnknownGroup: There is no such class or monitoring group.
            GroupRefused: The kernel rejected a thread. Earlier ones are moved.
            UnreadableHostFile: The threads of the group cannot be read.
            TooManyForks: New threads appear faster than they are moved.
        """
        for one in dict.fromkeys(("", monitor)):
            path = self._path(name, one)
            if "tasks" not in names_in(self.files, path):
                raise UnknownGroup(name, f"{self.files.root}/{path}")
        # First to the class: a monitoring group takes only threads of its class.
        paths = dict.fromkeys((self._path(name), self._path(name, monitor)))
        return max(move_threads(self.files, path, threads) for path in paths)

    def monitor(self, pod: str, name: str) -> None:
        """Create a monitoring group for a pod in a class.

        An existing one is used, even one of another program.

        Raises:
            BadGroupName: The UID is not valid for a folder.
            UnknownGroup: There is no such class.
            GroupRefused: The kernel rejected it, mostly as no RMID is left.
            ResctrlLocked: Another program holds the lock.
            StateUnusable: The journal cannot be written; nothing was changed.
        """
        path = self._path(name, checked_name(pod))
        with locked(self.files):
            if "tasks" not in names_in(self.files, self._folder(name)):
                raise UnknownGroup(name, f"{self.files.root}/{self._folder(name)}")
            if "tasks" not in names_in(self.files, path):
                make_monitor(self.files, self.journal, path)

    def unmonitor(self, pod: str, name: str) -> None:
        """Remove a group that `monitor` created; those of other programs stay.

        Raises:
            GroupRefused: The kernel rejected it.
            ResctrlLocked: Another program holds the lock.
            StateUnusable: The journal cannot be written; the group is removed.
        """
        with locked(self.files):
            remove_monitor(self.files, self.journal, self._path(name, pod))

    def counters(self) -> tuple[Count, ...]:
        """Return the counters of all groups, including those of other programs.

        Raises:
            UnreadableHostFile: A folder cannot be read.
        """
        files = self.files
        return tuple(
            count
            for group in ("", *groups_in(files))
            for monitor in ("", *names_in(files, path_in(group, "mon_groups")))
            for count in counts_of(files, group, monitor)
        )

    def _written_schemata(self, wanted: Collection[str]) -> dict[str, Schemata]:
        """Read the written schemata back: the kernel rounds bandwidths."""
        try:
            groups = survey(self.files)
        except HostError:  # the plan is applied; `drift` will raise the error
            return {}
        return {name: groups[name].schemata for name in wanted if name in groups}

    def _check_idle(self, steps: Steps) -> None:
        for name in (*steps.remove_first, *steps.remove_last):
            tasks = tasks_in(self.files, name)
            if tasks and not self._options.forces:
                raise GroupInUse(name, f"{self.files.root}/{name}", len(tasks))

    def _folder(self, name: str) -> str:
        if name in {"", ROOT_CLASS}:
            return ""
        return checked_name(self._options.prefix + name)

    def _path(self, name: str, monitor: str = "") -> str:
        folder = self._folder(name)
        return path_in(folder, f"mon_groups/{monitor}") if monitor else folder
