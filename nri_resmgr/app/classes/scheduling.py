"""Scheduling classes into adjustments, as far as the runtime's NRI goes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nri_proto import Level
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.scheduling import SchedulingClass
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import (
    IoPriority,
    IoPriorityClass,
    Scheduler,
    SchedulerFlag,
    SchedulerPolicy,
)
from nri_resmgr.stub.runtime_info import RuntimeInfo

log = Logger(__name__)

# The first releases whose runtimes read these fields; older ones drop them.
SCHEDULER_LEVEL: Final = Level(0, 11)
IO_PRIORITY_LEVEL: Final = Level(0, 10)

# Who sets classes, as documents say it.
RUNTIME: Final = "runtime"
HOST: Final = "host"
AUTO: Final = "auto"


class SchedulingSetter(ClassSetter):
    """Has classes set by the runtime as far as it can, and by the host else.

    Args:
        runtime: To reference adjustments are sent. Where it does not tell its NRI level,
            everything is sent: what it does not know does no harm.
        by: Who sets them: ``runtime``, ``host``, or ``auto``.
        tree: The host; None where there is nothing to set.
        are_there: Whether the policy has any to choose from.
    """

    def __init__(
        self,
        runtime: RuntimeInfo,
        by: str = RUNTIME,
        tree: Tree | None = None,
        *,
        are_there: bool = True,
    ) -> None:
        self._are_there = are_there
        self._runtime = runtime
        self._by = by
        self._tree = tree
        self._silent: set[str] = set()

    def concerns(self, new: NewContainer) -> bool:
        """Tell whether the policy may choose a class, or the container asks for one."""
        return self._are_there or bool(new.spec.preferences.scheduling_class)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: Decision[Any],
    ) -> ContainerAdjustment:
        """Add the class that the policy has chosen."""
        if decision.scheduling is not None:
            return self.add_class(adjustment, decision.scheduling)
        if asked := new.spec.preferences.scheduling_class:
            title = new.spec.title
            log.warning("scheduling.no-such-class", title=title, asked=asked)
        return adjustment

    def start(self, begun: NewContainer, decision: Decision[Any]) -> None:
        """Set what the runtime did not.

        Raises:
            SchedulingNotSet: It cannot be set, and only the host is to do it.
        """
        scheduling = decision.scheduling
        if self._by == RUNTIME or scheduling is None:
            return
        if not self._is_ours(SCHEDULER_LEVEL):
            scheduling = msgspec.structs.replace(scheduling, policy=None)
        if not self._is_ours(IO_PRIORITY_LEVEL):
            scheduling = msgspec.structs.replace(scheduling, io_class=None)
        if scheduling.policy is None and scheduling.io_class is None:
            return
        # Late: few nodes have classes, and runtimes that cannot set them.
        from nri_resmgr.app.classes.host_scheduling import SchedulingNotSet, set_by_host

        try:
            set_by_host(begun, scheduling, self._tree)
        except SchedulingNotSet as error:
            if self._by == HOST:
                raise
            log.warning("scheduling.not-set", title=begun.spec.title, why=error.why)

    def add_class(
        self, adjustment: ContainerAdjustment, scheduling: SchedulingClass
    ) -> ContainerAdjustment:
        """Add a class, as far as this runtime can set it."""
        told = adjustment
        scheduler, priority = scheduler_of(scheduling), io_priority_of(scheduling)
        if scheduler and self._can("scheduler", SCHEDULER_LEVEL):
            told = told.set_scheduler(scheduler)
        if priority and self._can("I/O priority", IO_PRIORITY_LEVEL):
            told = told.set_io_priority(priority)
        return told

    def _is_ours(self, since: Level) -> bool:
        level = self._runtime.level
        can = level is None or level >= since
        return self._by == HOST or (self._by == AUTO and not can)

    def _can(self, what: str, since: Level) -> bool:
        if self._is_ours(since):
            return False
        level = self._runtime.level
        if level is None or level >= since:
            return True
        if what not in self._silent:
            self._silent.add(what)
            log.warning(
                "scheduling.not-in-force",
                what=what,
                why=f"NRI {level} of {self._runtime} cannot set it, {since} could",
            )
        return False


def scheduler_of(scheduling: SchedulingClass) -> Scheduler | None:
    """Give a class' scheduler as NRI has it; None where it leaves that alone."""
    if scheduling.policy is None:
        return None
    return Scheduler(
        policy=SchedulerPolicy[scheduling.policy.name],
        nice=scheduling.nice,
        priority=scheduling.priority,
        flags=tuple(SchedulerFlag[flag.name] for flag in scheduling.flags),
        runtime=scheduling.runtime,
        deadline=scheduling.deadline,
        period=scheduling.period,
    )


def io_priority_of(scheduling: SchedulingClass) -> IoPriority | None:
    """Give a class' I/O priority as NRI has it; None where it leaves that alone."""
    if scheduling.io_class is None:
        return None
    kind = _IO_CLASSES[scheduling.io_class.value]
    return IoPriority(class_=kind, priority=scheduling.io_priority)


_IO_CLASSES: Final = {
    "rt": IoPriorityClass.RT,
    "be": IoPriorityClass.BE,
    "idle": IoPriorityClass.IDLE,
}
