"""Scheduling classes into adjustments, as far as the runtime's NRI goes."""

from __future__ import annotations

from typing import Any, Final

from nri_proto import Level
from nri_resmgr.app.class_setter import ClassSetter, NewContainer
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


class SchedulingSetter(ClassSetter):
    """Sets what the runtime can set, and says once what it cannot.

    Args:
        runtime: To whom adjustments are sent. Where it does not tell its NRI level,
            everything is sent: what it does not know does no harm.
    """

    def __init__(self, runtime: RuntimeInfo) -> None:
        self._runtime = runtime
        self._silent: set[str] = set()

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

    def _can(self, what: str, since: Level) -> bool:
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
