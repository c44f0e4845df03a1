"""Makes RDT groups, moves running containers into them, and removes the groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from nri_resmgr.app.classes.members import Member
from nri_resmgr.app.classes.rdt.host import RdtHost
from nri_resmgr.classes.rdt import ROOT_CLASS, Plan, plan_of
from nri_resmgr.config.rdt import RdtUse
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.threads import threads_of
from nri_resmgr.host.resctrl import RdtControl, ResctrlOptions, TextStore
from nri_resmgr.host.resctrl.errors import GroupInUse, ResctrlNotMounted
from nri_resmgr.host.resctrl.journal import ResctrlRecord, group_of
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError

log = Logger(__name__)

# Subjects of problems that are not about one container.
_GROUPS: Final = "groups"
_MONITORING: Final = "monitoring"


class RdtWriter:
    """Writes to resctrl; in a thread, and one call at a time."""

    def __init__(
        self,
        tree: Tree,
        host: RdtHost,
        open_control: Callable[[ResctrlOptions], RdtControl],
    ) -> None:
        self._tree = tree
        self._host = host
        self._open = open_control
        self._control: RdtControl | None = None
        self._options = ResctrlOptions()

    def set_up(self, use: RdtUse | None, members: Collection[Member]) -> None:
        """Make groups as configured; None removes those that were made.

        A failure is reported in the state of the host, and leaves no partial change.
        """
        problems = self._host.problems
        try:
            plan = self._made(use, members)
        except ResctrlNotMounted as error:
            # No failure: the same document may serve machines without RDT.
            self._host.settle(None, None, str(error))
        except ResmgrError as error:
            problems.fail(_GROUPS, str(error))
            self._host.settle(self._control, self._host.plan, str(error))
            self._control = None  # resctrl may be mounted again
        else:
            problems.clear(_GROUPS)
            self._host.settle(self._control if use else None, plan)

    def move(self, members: Iterable[Member]) -> None:
        """Move containers into their classes, and out of other classes made here."""
        if self._host.control is None:
            return
        try:
            mover = _ContainerMover(self._tree, self._host)
        except HostError as error:
            self._host.problems.fail(_GROUPS, str(error))
            return
        for member in members:
            try:
                mover.move(member)
            except HostError as error:
                self._host.problems.fail(member.title, str(error))
            else:
                self._host.problems.clear(member.title)

    def look(self) -> None:
        """Read the present groups, for `status`."""
        try:
            self._host.look()
        except HostError as error:
            self._host.problems.fail(_GROUPS, str(error))

    def prune(self, pods: Collection[str]) -> None:
        """Remove the monitoring groups of pods other than *pods*."""
        control = self._control
        if control is None:
            return
        try:
            for path in sorted(control.journal.load().monitors):
                pod = path.rpartition("/")[2]
                if pod not in pods:
                    control.unmonitor(pod, group_of(path))
        except HostError as error:
            self._host.problems.fail(_MONITORING, str(error))

    def is_due(self, use: RdtUse | None) -> bool:
        """Return whether groups are missing, failed, or were changed by others."""
        if use is None:
            return False
        is_lacking = (
            self._host.control is None or _GROUPS in self._host.problems.present
        )
        return is_lacking or self._has_drifted()

    def restore(self) -> None:
        """Undo all changes of this process and of earlier ones."""
        try:
            control = self._opened(self._options)
            # Most hosts have no changes, and on some the lock is in use.
            if control.journal.load() != ResctrlRecord():
                report = control.restore()
                log.info("rdt.restored", removed=report.removed, failed=report.failed)
        except ResctrlNotMounted:
            pass  # groups end with their mount
        except HostError as error:
            log.error("rdt.not-restored", why=str(error))

    def _has_drifted(self) -> bool:
        if self._host.control is None or self._host.plan is None:
            return False
        try:
            drifts = self._host.control.drift()
        except HostError as error:
            self._host.problems.fail(_GROUPS, str(error))
            return False
        for one in drifts:
            present = one.present if one.present is None else one.present.split()
            log.warning(
                "rdt.drifted",
                group=one.group,
                wanted=one.expected.split(),
                found=present,
            )
        return bool(drifts)

    def _made(self, use: RdtUse | None, members: Collection[Member]) -> Plan | None:
        if use is None:
            self.restore()
            return None
        options = ResctrlOptions(adopts=use.adopts, forces=use.forces)
        control = self._opened(options)
        if use.config is None:
            # Monitoring groups stay, or their counters would begin again; `prune`
            # removes those that nothing wants.
            record = control.journal.load()
            if record != ResctrlRecord(monitors=record.monitors):
                control.restore()
            return None
        plan = plan_of(use.config, control.capabilities())
        try:
            report = control.apply(plan)
        except GroupInUse as error:
            # Known containers leave a group before its removal, whatever they ask for.
            self._empty(control, error.name, members)
            report = control.apply(plan)
        log.info(
            "rdt.groups-set",
            classes=tuple(plan.schemata),
            made=report.made,
            removed=report.removed,
            ignored=plan.ignored,
            failed=report.failed,
        )
        return plan

    def _opened(self, options: ResctrlOptions) -> RdtControl:
        if self._control is None or options != self._options:
            self._control, self._options = self._open(options), options
        return self._control

    def _empty(
        self, control: RdtControl, group: str, members: Iterable[Member]
    ) -> None:
        inside, places = control.tasks(group), CgroupFinder(self._tree)
        for member in members:
            threads = _threads(self._tree, places, member)
            if not inside.isdisjoint(threads()):
                stays = member.name != group and control.has_class(member.name)
                control.move(threads, member.name if stays else ROOT_CLASS)


class _ContainerMover:
    """Moves containers; reads once which threads are in which group."""

    def __init__(self, tree: Tree, host: RdtHost) -> None:
        assert host.control is not None  # noqa: S101 - the caller has checked it
        self._tree = tree
        self._host = host
        self._control = control = host.control
        self._places = CgroupFinder(tree)
        self._group_of = {
            task: name for name in control.classes() for task in control.tasks(name)
        }
        self._ours = frozenset(host.plan.schemata) if host.plan else frozenset[str]()

    def move(self, member: Member) -> None:
        threads = _threads(self._tree, self._places, member)
        present = threads()
        if not present:
            return  # it does not run
        now = {self._group_of.get(task, ROOT_CLASS) for task in present}
        name = self._target(member, now)
        if not name:
            return
        monitor = self._monitor(member.pod, name) if member.is_monitored else ""
        if monitor or now != {name}:
            self._control.move(threads, name, monitor)

    def _target(self, member: Member, now: set[str]) -> str:
        """Return the group; a container without a class stays in groups of others."""
        key, before = member.reference.id, self._host.before
        if member.name and self._host.has(member.name):
            if member.is_adjusted:
                was = ROOT_CLASS if member.name in now else min(now)
                before.setdefault(key, was)
            else:
                before.pop(key, None)
            return member.name
        if was := before.pop(key, ""):  # its adjustment is gone
            return was if self._host.has(was) else ROOT_CLASS
        if now & self._ours:
            return ROOT_CLASS
        return next(iter(now)) if len(now) == 1 else ""

    def _monitor(self, pod: str, name: str) -> str:
        """Make the monitoring group of a pod; return its name, empty without one."""
        try:
            if pod:
                self._control.monitor(pod, name)
        except HostError as error:
            # The container gets its class all the same.
            self._host.problems.fail(_MONITORING, str(error))
            return ""
        return pod


def _threads(
    tree: Tree, places: CgroupFinder, member: Member
) -> Callable[[], frozenset[int]]:
    reference = member.reference
    place = places.find(reference.id, reference.path, reference.pid)
    if place is None:
        return frozenset
    return lambda: threads_of(tree, place.scope)


class _InMemoryState:
    """Stands for the state directory where there is none."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self._texts.get(name)

    def write(self, name: str, text: str) -> None:
        self._texts[name] = text

    def remove(self, name: str) -> None:
        self._texts.pop(name, None)

    def set_aside(self, name: str) -> str:
        self.remove(name)
        return name


def opener(
    tree: Tree, store: TextStore | None
) -> Callable[[ResctrlOptions], RdtControl]:
    """Return a function that opens the resctrl file system of a host.

    Without a store the journal is kept in this process only.
    """
    texts = store or _InMemoryState()
    return lambda options: RdtControl.open(tree, texts, options)
