"""Scheduling classes: set by the runtime if its NRI release can, else on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from nri_proto import NriLevel
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer, NotSetOnHost
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import (
    IoPriority,
    IoPriorityClass,
    Scheduler,
    SchedulerFlag,
    SchedulerPolicy,
)
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values.scheduling import SchedulingClass

log = Logger(__name__)

# First NRI releases that have these fields; older runtimes drop them.
SCHEDULER_LEVEL: Final = NriLevel(0, 11)
IO_PRIORITY_LEVEL: Final = NriLevel(0, 10)

# Values of `schedulingBy` in documents.
RUNTIME: Final = "runtime"
HOST: Final = "host"
AUTO: Final = "auto"


class SchedulingSetter(ClassSetter):
    """Sets scheduling classes by adjustments, or on processes before they start.

    They are set *by* ``runtime``, ``host``, or ``auto`` for the host where the runtime
    cannot. If the NRI release of the runtime is unknown, everything is sent: a runtime
    ignores fields that it does not know.
    """

    def __init__(
        self,
        runtime: RuntimeInfo,
        by: str = RUNTIME,
        tree: Tree | None = None,
        *,
        has_classes: bool = True,
    ) -> None:
        if not has_classes:
            # To log that there is no such class.
            self.annotations = frozenset(("scheduling-class",))
        self._runtime = runtime
        self._by = by
        self._tree = tree
        self._logged: set[str] = set()
        if has_classes and by != RUNTIME:
            _host_setter()

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerAdjustment:
        """Add the class that the policy has chosen."""
        if decision.scheduling is not None:
            return self.add_class(adjustment, decision.scheduling)
        if asked := new.spec.preferences.scheduling_class:
            title = new.spec.title
            log.warning("scheduling.no-such-class", title=title, asked=asked)
        return adjustment

    def start(self, new: NewContainer, decision: PolicyDecision) -> None:
        """Set what the runtime does not set.

        Raises:
            NotSetOnHost: It cannot be set, and *by* is ``host``.
        """
        scheduling = decision.scheduling
        if self._by == RUNTIME or scheduling is None:
            return
        if not self._is_by_host(SCHEDULER_LEVEL):
            scheduling = msgspec.structs.replace(scheduling, policy=None)
        if not self._is_by_host(IO_PRIORITY_LEVEL):
            scheduling = msgspec.structs.replace(scheduling, io_class=None)
        if scheduling.policy is None and scheduling.io_class is None:
            return
        try:
            _host_setter()(new, scheduling, self._tree)
        except NotSetOnHost as error:
            if self._by == HOST:
                raise
            log.warning("scheduling.not-set", title=new.spec.title, why=error.why)

    def add_class(
        self, adjustment: ContainerAdjustment, scheduling: SchedulingClass
    ) -> ContainerAdjustment:
        """Add what this runtime can set of a class."""
        result = adjustment
        scheduler, priority = scheduler_of(scheduling), io_priority_of(scheduling)
        if scheduler and self._can("scheduler", SCHEDULER_LEVEL):
            result = result.set_scheduler(scheduler)
        if priority and self._can("I/O priority", IO_PRIORITY_LEVEL):
            result = result.set_io_priority(priority)
        return result

    def _is_by_host(self, since: NriLevel) -> bool:
        level = self._runtime.level
        can = level is None or level >= since
        return self._by == HOST or (self._by == AUTO and not can)

    def _can(self, what: str, since: NriLevel) -> bool:
        if self._is_by_host(since):
            return False
        level = self._runtime.level
        if level is None or level >= since:
            return True
        if what not in self._logged:
            self._logged.add(what)
            log.warning(
                "scheduling.ineffective",
                what=what,
                why=f"NRI {level} of {self._runtime} cannot set it, {since} could",
            )
        return False


def _host_setter() -> Callable[[NewContainer, SchedulingClass, Tree | None], None]:
    # Late: few nodes have classes and a runtime that cannot set them.
    from nri_resmgr.app.classes.host_scheduling import set_by_host

    return set_by_host


def scheduler_of(scheduling: SchedulingClass) -> Scheduler | None:
    """Return the scheduler of a class in NRI's form; None where it sets none."""
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
    """Return the I/O priority of a class in NRI's form; None where it sets none."""
    if scheduling.io_class is None:
        return None
    kind = _IO_CLASSES[scheduling.io_class.value]
    return IoPriority(class_=kind, priority=scheduling.io_priority)


_IO_CLASSES: Final = {
    "rt": IoPriorityClass.RT,
    "be": IoPriorityClass.BE,
    "idle": IoPriorityClass.IDLE,
}
