"""How the kernel schedules a container: CPU, I/O, memory policy, resctrl."""

from __future__ import annotations

import attrs

from nri_resmgr.stub.model.enums import (
    IoPriorityClass,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    SchedulerFlag,
    SchedulerPolicy,
)
from nri_resmgr.stub.model.frozen import Value, as_texts, as_tuple
from nri_resmgr.values.declared import frozen


@frozen
class IoPriority(Value):
    """ioprio_set(2); `class_` is the schema's `class`."""

    class_: IoPriorityClass | int = IoPriorityClass.NONE
    priority: int = 0


@frozen
class Scheduler(Value):
    """sched_setattr(2); times in nanoseconds, for the deadline policy."""

    policy: SchedulerPolicy | int = SchedulerPolicy.NONE
    nice: int = 0
    priority: int = 0
    flags: tuple[SchedulerFlag | int, ...] = attrs.field(default=(), converter=as_tuple)
    runtime: int = 0
    deadline: int = 0
    period: int = 0


@frozen
class MemoryPolicy(Value):
    """set_mempolicy(2) with `nodes` in the kernel's list format."""

    mode: MemoryPolicyMode | int = MemoryPolicyMode.DEFAULT
    nodes: str = ""
    flags: tuple[MemoryPolicyFlag | int, ...] = attrs.field(
        default=(), converter=as_tuple
    )


@frozen
class Rdt(Value):
    """A resctrl group; `remove` drops what earlier plugins set."""

    clos_id: str | None = None
    schemata: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(as_texts)
    )
    enable_monitoring: bool | None = None
    remove: bool = False
