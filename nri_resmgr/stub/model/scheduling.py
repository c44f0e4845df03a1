"""How the kernel schedules a container: CPU, I/O, memory policy, resctrl."""

from __future__ import annotations

import msgspec

from nri_resmgr.stub.model.enums import (
    IoPriorityClass,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    SchedulerFlag,
    SchedulerPolicy,
)


class IoPriority(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """ioprio_set(2); `class_` is the schema's `class`."""

    class_: IoPriorityClass | int = IoPriorityClass.NONE
    priority: int = 0


class Scheduler(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """sched_setattr(2); times in nanoseconds, for the deadline policy."""

    policy: SchedulerPolicy | int = SchedulerPolicy.NONE
    nice: int = 0
    priority: int = 0
    flags: tuple[SchedulerFlag | int, ...] = ()
    runtime: int = 0
    deadline: int = 0
    period: int = 0


class MemoryPolicy(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """set_mempolicy(2) with `nodes` in the kernel's list format."""

    mode: MemoryPolicyMode | int = MemoryPolicyMode.DEFAULT
    nodes: str = ""
    flags: tuple[MemoryPolicyFlag | int, ...] = ()


class Rdt(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A resctrl group; `remove` drops what earlier plugins set."""

    clos_id: str | None = None
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool | None = None
    remove: bool = False
