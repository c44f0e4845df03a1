"""Makes RDT groups, moves running containers into them, and removes the groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from nri_resmgr.app.classes.members import Member
from nri_resmgr.app.classes.rdt.host import RdtHost
from nri_resmgr.classes.rdt import ROOT_CLASS, Plan, plan_of
from nri_resmgr.config.rdt_use import RdtUse
from nri_resmgr.host.container_places import Places
from nri_resmgr.host.resctrl import Keeper, Options, RdtControl, threads_of
from nri_resmgr.host.resctrl.errors import GroupInUse, ResctrlNotMounted
from nri_resmgr.host.resctrl.journal import Record, group_of
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError

log = Logger(__name__)

# Subjects of problems that are not about one container.
_GROUPS: Final = "groups"
_MONITORING: Final = "monitoring"


class RdtWriter:
    """Writes to resctrl; for a thread, and one call at a time.

    Args:
        tree: The host.
        host: Takes the outcome.
        open_control: Opens resctrl; raises `HostError` where it cannot.
    """

    def __init__(
        self,
        tree: Tree,
        host: RdtHost,
        open_control: Callable[[Options], RdtControl],
    ) -> None:
        self._tree = tree
        self._host = host
        self._open = open_control
        self._control: RdtControl | None = None
        self._options = Options()

    def set_up(self, use: RdtUse | None, members: Collection[Member]) -> None:
        """Make groups as configured; None removes those that were made.

        Problems are noted with the host, and nothing is done by halves.
        """
        problems = self._host.problems
        try:
            plan = self._made(use, members)
        except ResctrlNotMounted as error:
            # Such a machine may have the same document as others: no failure.
            self._host.settle(None, None, str(error))
        except ResmgrError as error:
            problems.fail(_GROUPS, str(error))
            self._host.settle(self._control, self._host.plan, str(error))
            self._control = None  # it may be mounted anew
        else:
            problems.clear(_GROUPS)
            self._host.settle(self._control if use else None, plan)

    def put(self, members: Iterable[Member], *, monitors: bool) -> None:
        """Move containers into their classes, and out of other classes of ours."""
        if self._host.control is None:
            return
        try:
            sorting = _Sorting(self._tree, self._host, monitors=monitors)
        except HostError as error:
            self._host.problems.fail(_GROUPS, str(error))
            return
        for member in members:
            try:
                sorting.put(member)
            except HostError as error:
                self._host.problems.fail(member.title, str(error))
            else:
                self._host.problems.clear(member.title)

    def look(self) -> None:
        """Read which groups there are now, for `status`."""
        try:
            self._host.look()
        except HostError as error:
            self._host.problems.fail(_GROUPS, str(error))

    def prune(self, pods: Collection[str]) -> None:
        """Remove the monitoring groups of pods that are gone."""
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
        """Tell whether groups are not what was made of them, or could not be made."""
        if use is None:
            return False
        is_lacking = (
            self._host.control is None or _GROUPS in self._host.problems.present
        )
        return is_lacking or self._has_drifted()

    def restore(self) -> None:
        """Undo all changes of this process, and of those before it."""
        try:
            control = self._opened(self._options)
            # Most hosts have nothing of ours, and some have a lock in use.
            if control.journal.load() != Record():
                report = control.restore()
                log.info("rdt.restored", removed=report.removed, failed=report.failed)
        except ResctrlNotMounted:
            pass
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
                "rdt.drifted", group=one.group, wanted=one.ours.split(), found=present
            )
        return bool(drifts)

    def _made(self, use: RdtUse | None, members: Collection[Member]) -> Plan | None:
        if use is None:
            self.restore()
            return None
        options = Options(adopts=use.adopts, forces=use.forces)
        control = self._opened(options)
        if use.config is None:
            if control.journal.load() != Record():
                control.restore()
            return None
        plan = plan_of(use.config, control.capabilities())
        try:
            report = control.apply(plan)
        except GroupInUse as error:
            # Those that we know cannot stay, whatever they ask for.
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

    def _opened(self, options: Options) -> RdtControl:
        if self._control is None or options != self._options:
            self._control, self._options = self._open(options), options
        return self._control

    def _empty(
        self, control: RdtControl, group: str, members: Iterable[Member]
    ) -> None:
        inside, places = control.tasks(group), Places(self._tree)
        for member in members:
            threads = _threads(self._tree, places, member)
            if not inside.isdisjoint(threads()):
                stays = member.name != group and control.has_class(member.name)
                control.move(threads, member.name if stays else ROOT_CLASS)


class _Sorting:
    """Moves containers, by one look at which threads are in which group."""

    def __init__(self, tree: Tree, host: RdtHost, *, monitors: bool) -> None:
        assert host.control is not None  # noqa: S101 - the caller has looked
        self._tree = tree
        self._host = host
        self._control = control = host.control
        self._monitors = monitors
        self._places = Places(tree)
        self._group_of = {
            task: name for name in control.classes() for task in control.tasks(name)
        }
        self._ours = frozenset(host.plan.schemata) if host.plan else frozenset[str]()

    def put(self, member: Member) -> None:
        threads = _threads(self._tree, self._places, member)
        present = threads()
        if not present:
            return  # it does not run
        now = {self._group_of.get(task, ROOT_CLASS) for task in present}
        name = self._target(member, now)
        if not name:
            return
        monitor = self._monitor(member.pod, name) if self._monitors else ""
        if monitor or now != {name}:
            self._control.move(threads, name, monitor)

    def _target(self, member: Member, now: set[str]) -> str:
        """Find the group; a container without a class stays where others put it."""
        if member.name and self._host.has(member.name):
            return member.name
        if now & self._ours:
            return ROOT_CLASS
        return next(iter(now)) if len(now) == 1 else ""

    def _monitor(self, pod: str, name: str) -> str:
        """Have a monitoring group; without one the class holds all the same."""
        try:
            if pod:
                self._control.monitor(pod, name)
        except HostError as error:
            self._host.problems.fail(_MONITORING, str(error))
            return ""
        return pod


def _threads(
    tree: Tree, places: Places, member: Member
) -> Callable[[], frozenset[int]]:
    reference = member.reference
    place = places.find(reference.id, reference.path, reference.pid)
    if place is None:
        return frozenset
    return lambda: threads_of(tree, place.scope)


class _Kept:
    """A journal where no state is kept: it ends with the process."""

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


def opener(tree: Tree, keeper: Keeper | None) -> Callable[[Options], RdtControl]:
    """Return what opens the resctrl file system of a host.

    Args:
        tree: The host.
        keeper: Where the journal is kept; None for in this process only.
    """
    kept = keeper or _Kept()
    return lambda options: RdtControl.open(tree, kept, options)
