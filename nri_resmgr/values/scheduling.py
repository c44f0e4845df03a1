"""Scheduling classes: Linux scheduler and I/O priority under one name."""

from __future__ import annotations

import enum

import msgspec


class SchedulingPolicy(enum.StrEnum):
    """Scheduling policies of sched(7); the values are those of configurations."""

    OTHER = "other"
    FIFO = "fifo"
    RR = "rr"
    BATCH = "batch"
    ISO = "iso"
    IDLE = "idle"
    DEADLINE = "deadline"


class SchedulingFlag(enum.StrEnum):
    """Flags of sched_setattr(2); the values are those of configurations."""

    RESET_ON_FORK = "reset-on-fork"
    RECLAIM = "reclaim"
    DL_OVERRUN = "dl-overrun"
    KEEP_POLICY = "keep-policy"
    KEEP_PARAMS = "keep-params"
    UTIL_CLAMP_MIN = "util-clamp-min"
    UTIL_CLAMP_MAX = "util-clamp-max"


class IoClass(enum.StrEnum):
    """I/O classes of ioprio_set(2); the values are those of configurations."""

    RT = "rt"
    BEST_EFFORT = "be"
    IDLE = "idle"


class SchedulingClass(msgspec.Struct, frozen=True, kw_only=True):
    """Scheduler and I/O priority of a container's processes; None for no change.

    Attributes:
        priority: 1 to 99 for fifo and rr, 0 for the others.
        nice: -20 to 19, for other and batch.
        runtime, deadline, period: Nanoseconds, for deadline.
        io_priority: 0 (highest) to 7, for rt and be.
    """

    name: str
    policy: SchedulingPolicy | None = None
    priority: int = 0
    flags: tuple[SchedulingFlag, ...] = ()
    nice: int = 0
    runtime: int = 0
    deadline: int = 0
    period: int = 0
    io_class: IoClass | None = None
    io_priority: int = 0
