"""CPU classes as an operator defines them."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.classes.cpu.frequency import Frequency


class TurboDomain(enum.StrEnum):
    """Scope in which classes compete for turbo; the values are those of documents."""

    PACKAGE = "package"
    SYSTEM = "system"


class PctPriority(enum.StrEnum):
    """Priority Core Turbo, set up by this daemon; values as in documents."""

    HIGH = "high"
    LOW = "low"


class CpuClass(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU class. What is None or empty is not set on the host.

    Attributes:
        name: Its name in documents and annotations.
        min: The lowest frequency of its CPUs.
        max: The highest frequency.
        governor: The scaling governor.
        epp: The energy performance preference: a word of the driver, or 0
            (performance) to 255 (power).
        uncore_min: The lowest frequency of the dies that its CPUs are on.
        uncore_max: The highest frequency of these dies.
        disabled_cstates: Names of idle states that its CPUs must not enter; all
            others are enabled, and an empty tuple enables all.
        wake_latency: Microseconds in which its CPUs must wake from idle, as the kernel
            writes them: ``0`` for no limit, ``n/a`` for no idle state but polling.
        turbo_priority: With a lower priority than another class in use in its domain,
            turbo means the base frequency for this class.
        pct_priority: High or low priority of Speed Select, set up by this daemon.
        pct_min: Frequency that cores of the priority get before others; None for `min`.
        pct_max: Frequency that they never exceed; None for `max`.
        sst_clos: Class of service of Speed Select, set up by other means.
        is_published: Whether the node publishes the number of its CPUs to the cluster.
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
