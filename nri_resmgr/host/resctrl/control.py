"""Groups made, changed and taken away, so that classes are what a plan says."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from nri_resmgr.classes.rdt.capabilities import BandwidthMode, Capabilities
from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl.apply import carry_out, undo_all
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
from nri_resmgr.host.resctrl.files import HostFiles, ResctrlFiles
from nri_resmgr.host.resctrl.groups import (
    checked_name,
    groups_in,
    locked,
    names_in,
    path_in,
    survey,
)
from nri_resmgr.host.resctrl.journal import Journal, Keeper
from nri_resmgr.host.resctrl.monitors import make_monitor, remove_monitor
from nri_resmgr.host.resctrl.report import Drift, Options, Report
from nri_resmgr.host.resctrl.schemata import Schemata, merged, render_schemata
from nri_resmgr.host.resctrl.snapshot import look
from nri_resmgr.host.resctrl.steps import Steps, steps_to
from nri_resmgr.host.resctrl.threads import move_threads, tasks_in
from nri_resmgr.host.resctrl_mount import find_mount
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError

_BOOT: Final = "/proc/sys/kernel/random/boot_id"


class RdtControl:
    """RDT classes as groups of a resctrl file system.

    Everything is a file or several, and other programs may hold the lock: an event
    loop calls this from a thread. Whatever it changes is in the journal before.

    Make it with `open`.

    Args:
        files: Where resctrl is mounted.
        journal: What was done to it, in this boot.
        mode: What bandwidth is counted in.
        options: What is ours.
    """

    def __init__(
        self,
        files: ResctrlFiles,
        journal: Journal,
        mode: BandwidthMode = BandwidthMode.PERCENT,
        options: Options | None = None,
    ) -> None:
        self.files = files
        self.journal = journal
        self._mode = mode
        self._options = options or Options()
        self._held: dict[str, Schemata] = {}

    @classmethod
    def open(
        cls, tree: Tree, keeper: Keeper, options: Options | None = None
    ) -> RdtControl:
        """Find resctrl on a host, and what we did to it before.

        Args:
            tree: The host.
            keeper: Where the journal is kept: a `StateDir`.
            options: What is ours.

        Raises:
            ResctrlNotMounted: There is none.
            UnreadableHostFile: The table of mounts cannot be read.
        """
        mount = find_mount(tree)
        if mount is None:
            raise ResctrlNotMounted
        cpuinfo = tree.read("/proc/cpuinfo") or ""
        mode = bandwidth_mode(cpuinfo, in_mbps=mount.is_in_mbps)
        # After another boot, or mounted otherwise, nothing of ours is left.
        place = " ".join([tree.read(_BOOT) or "", mount.path, *sorted(mount.options)])
        files = HostFiles(tree.root + mount.path)
        return cls(files, Journal(keeper, place), mode, options)

    def capabilities(self) -> Capabilities:
        """Read what the machine can allocate and count.

        Raises:
            HostError: A file is missing, cannot be read, or makes no sense.
        """
        return read_capabilities(self.files, self._mode)

    def apply(self, plan: Plan) -> Report:
        """Make groups what a plan says, or leave all as it is.

        Raises:
            TooManyGroups: There are not enough closids.
            ForeignGroup: A group of another program is in the way.
            GroupInUse: Something runs in a class that is to go.
            ExclusiveOverlap: A group of another program shares with nobody.
            BadGroupName: A class has a name that no folder can have.
            GroupRefused: The kernel refused something; all is as it was.
            ResctrlLocked: Another program keeps the lock.
            StateUnusable: The journal cannot be written; all is as it was.
        """
        wanted = {self._folder(name): text for name, text in plan.schemata.items()}
        if plan.root is not None:
            wanted[""] = plan.root
        with locked(self.files):
            can = self.capabilities()
            scene = look(self.files, self.journal, can, self._options)
            steps = steps_to(wanted, scene)
            self._check_idle(steps)
            report = carry_out(steps, scene, self.files, self.journal)
            self._held = self._holding(wanted)
        return report

    def restore(self) -> Report:
        """Undo all that we did: what ran in our groups falls to the root group.

        What does not work is in the report, and in the journal for the next time.

        Raises:
            ResctrlLocked: Another program keeps the lock.
            UnreadableHostFile: The kernel does not say what there is.
            StateUnusable: The journal cannot be read.
        """
        with locked(self.files):
            record = self.journal.load().within(survey(self.files))
            self._held = {}
            return undo_all(self.files, self.journal, record)

    def drift(self) -> tuple[Drift, ...]:
        """Compare groups with what they held after `apply`.

        Raises:
            HostError: A file cannot be read or makes no sense.
        """
        groups = survey(self.files)
        found = []
        for name, held in self._held.items():
            present = groups[name].schemata if name in groups else None
            if present is None or merged(present, held) != present:
                now = None if present is None else render_schemata(present)
                found.append(Drift(name, render_schemata(held), now))
        return tuple(found)

    def classes(self) -> tuple[str, ...]:
        """Return the names of all groups that could be a container's class.

        Groups of other programs are among them, those that do not have our prefix
        excepted. The root group is not: see `ROOT_CLASS`.

        Raises:
            HostError: A file cannot be read or makes no sense.
        """
        prefix = self._options.prefix
        return tuple(
            name.removeprefix(prefix)
            for name, group in survey(self.files).items()
            if name and name.startswith(prefix) and not group.is_for_a_region
        )

    def has_class(self, name: str) -> bool:
        """Tell whether a container can be given a class.

        Raises:
            UnreadableHostFile: The kernel does not say.
        """
        return "tasks" in names_in(self.files, self._folder(name))

    def schemata_of(self, name: str) -> str | None:
        """Return what a class really has, in the form of a plan; None without it.

        Raises:
            HostError: A file cannot be read or makes no sense.
        """
        group = survey(self.files).get(self._folder(name))
        return None if group is None else render_schemata(group.schemata)

    def tasks(self, name: str, monitor: str = "") -> frozenset[int]:
        """Return the ids of the threads in a class, or in a monitoring group of it.

        Raises:
            UnreadableHostFile: The kernel does not tell.
        """
        return tasks_in(self.files, self._path(name, monitor))

    def move(
        self, threads: Callable[[], Collection[int]], name: str, monitor: str = ""
    ) -> int:
        """Move threads into a class, until a look at them finds no new one.

        Args:
            threads: Tells which there are now, such as `threads_of` a cgroup.
            name: The class.
            monitor: Also into this monitoring group of it.

        Returns:
            How many were moved.

        Raises:
            UnknownGroup: There is no such class or monitoring group.
            GroupRefused: The kernel refused one. Those before are moved.
            UnreadableHostFile: The kernel does not tell what is in the group.
            TooManyForks: There is no end.
        """
        for one in dict.fromkeys(("", monitor)):
            path = self._path(name, one)
            if "tasks" not in names_in(self.files, path):
                raise UnknownGroup(name, f"{self.files.root}/{path}")
        # First into the class: a monitoring group takes only threads of its own.
        paths = dict.fromkeys((self._path(name), self._path(name, monitor)))
        return max(move_threads(self.files, path, threads) for path in paths)

    def monitor(self, pod: str, name: str) -> None:
        """Have a group that counts what a pod in a class uses.

        One that is there already, whoever made it, will do.

        Args:
            pod: Its UID, which is the group's name.
            name: The class.

        Raises:
            BadGroupName: That makes no folder.
            UnknownGroup: There is no such class.
            GroupRefused: The kernel refused: there may be no RMID left.
            ResctrlLocked: Another program keeps the lock.
            StateUnusable: The journal cannot be written; nothing was done.
        """
        path = self._path(name, checked_name(pod))
        with locked(self.files):
            if "tasks" not in names_in(self.files, self._folder(name)):
                raise UnknownGroup(name, f"{self.files.root}/{self._folder(name)}")
            if "tasks" not in names_in(self.files, path):
                make_monitor(self.files, self.journal, path)

    def unmonitor(self, pod: str, name: str) -> None:
        """Remove a group that `monitor` made; others stay.

        Raises:
            GroupRefused: The kernel refused.
            ResctrlLocked: Another program keeps the lock.
            StateUnusable: The journal cannot be written; the group is gone.
        """
        with locked(self.files):
            remove_monitor(self.files, self.journal, self._path(name, pod))

    def counters(self) -> tuple[Count, ...]:
        """Return what classes and monitoring groups use, of whomever they are.

        Raises:
            UnreadableHostFile: The kernel does not let us see the folders.
        """
        files = self.files
        return tuple(
            count
            for group in ("", *groups_in(files))
            for monitor in ("", *names_in(files, path_in(group, "mon_groups")))
            for count in counts_of(files, group, monitor)
        )

    def _holding(self, wanted: Collection[str]) -> dict[str, Schemata]:
        """Read what the kernel made of what we wrote: it rounds bandwidths."""
        try:
            groups = survey(self.files)
        except HostError:  # all is done, and who asks for drift is told
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
