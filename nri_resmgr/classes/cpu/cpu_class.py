"""What an operator wants of the CPUs of a class."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.classes.cpu.frequency import Frequency


class TurboDomain(enum.StrEnum):
    """Among whose CPUs classes compete for turbo; the values are those of documents."""

    PACKAGE = "package"
    SYSTEM = "system"


class PctPriority(enum.StrEnum):
    """Priority Core Turbo, managed by us; the values are the words of documents."""

    HIGH = "high"
    LOW = "low"


class CpuClass(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU class. What is None or empty is left as the host has it.

    Attributes:
        name: What documents and annotations call it.
        min: The lowest frequency of its CPUs.
        max: The highest one.
        governor: The scaling governor.
        epp: The energy performance preference, a word of the driver or 0
            (performance) to 255 (power).
        uncore_min: The lowest frequency of the dies that its CPUs are on.
        uncore_max: The highest one.
        disabled_cstates: Names of idle states that its CPUs must not enter; all
            others are enabled, and an empty tuple enables all.
        wake_latency: The microseconds in which its CPUs have to wake from idle, as the
            kernel writes them: ``0`` for any time, ``n/a`` for none at all.
        turbo_priority: Who has less than another class in use in its domain has the
            base frequency where it says turbo. With 0 everywhere nobody loses.
        pct_priority: High or low priority of Speed Select, all of it set by us.
        pct_min: What cores of the priority get before others; None for `min`.
        pct_max: What they never exceed; None for `max`.
        sst_clos: The class of service of Speed Select, set up by somebody else.
        is_published: Whether the cluster is told how many CPUs it can have.
    """

    name: str
    min: Frequency | None = None
    max: Frequency | None = None
    governor: str = ""
    epp: str | int | None = None
    uncore_min: Frequency | None = None
    uncore_max: Frequency | None = None
    disabled_cstates: tuple[str, ...] | None = None
    wake_latency: str = ""
    turbo_priority: int = 0
    pct_priority: PctPriority | None = None
    pct_min: Frequency | None = None
    pct_max: Frequency | None = None
    sst_clos: int | None = None
    is_published: bool = False
