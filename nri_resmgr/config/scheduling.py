"""Scheduling classes of a document, and who is in which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

CLASSES: Final = "schedulingClasses"
WHO_SETS: Final = "schedulingBy"
OF_NAMESPACES: Final = "namespaceSchedulingClasses"
OF_QOS_CLASSES: Final = "podQoSSchedulingClasses"

_NONE: Final = "none"
_KEYS: Final = (
    "name",
    "policy",
    "priority",
    "flags",
    "nice",
    "runtime",
    "deadline",
    "period",
    "ioClass",
    "ioPriority",
)
_TIMES: Final = ("runtime", "deadline", "period")

# Who takes which parameter; see sched(7) and ioprio_set(2).
_REAL_TIME: Final = (SchedulingPolicy.FIFO, SchedulingPolicy.RR)
_NICE: Final = (SchedulingPolicy.OTHER, SchedulingPolicy.BATCH, SchedulingPolicy.IDLE)
_RANKED: Final = (IoClass.RT, IoClass.BEST_EFFORT)

# The kernel takes no shorter runtime (DL_SCALE, kernel/sched/deadline.c), and
# the highest bit of the other two must be 0.
_SHORTEST: Final = 1024
_LONGEST: Final = (1 << 63) - 1


def read_who_sets(spec: Table) -> str:
    """Read who sets classes.

    Raises:
        BadSetting: It is none of those who can.
    """
    return spec.choice(WHO_SETS, ("auto", "runtime", "host"), "auto")


def read_scheduling_classes(spec: Table) -> Mapping[str, SchedulingClass]:
    """Read the classes that a spec defines, by name.

    Raises:
        BadSetting: A class is none that the kernel would take, or two have the
            same name.
    """
    found: dict[str, SchedulingClass] = {}
    for row in spec.tables(CLASSES, *_KEYS):
        name = row.name("name")
        if name in found:
            raise BadSetting(row.at("name"), f"{name!r} comes twice")
        found[name] = _class(row, name)
    return found


def read_namespace_classes(spec: Table, classes: Sequence[str]) -> Mapping[str, str]:
    """Read which class containers of a namespace are in.

    Raises:
        BadSetting: A class is none of *classes*.
    """
    rows = spec.open_table(OF_NAMESPACES)
    return {key: rows.choice(key, classes, "") for key in rows.rows}


def read_qos_classes(spec: Table, classes: Sequence[str]) -> Mapping[QosClass, str]:
    """Read which class containers of a QoS class are in; letter case is free.

    Raises:
        BadSetting: A class is none of *classes*, or a key no QoS class or twice
            the same.
    """
    rows = spec.open_table(OF_QOS_CLASSES)
    words = {qos.lower(): qos for qos in QosClass}
    found: dict[QosClass, str] = {}
    for key in rows.rows:
        qos = words.get(key.lower())
        if qos is None or qos in found:
            known = f"expected {' or '.join(QosClass)}, in any letter case"
            what = "unknown QoS class" if qos is None else f"{qos} comes twice"
            raise BadSetting(rows.at(key), f"{what}, {known}")
        found[qos] = rows.choice(key, classes, "")
    return found


def _class(row: Table, name: str) -> SchedulingClass:
    policy = row.choice("policy", (_NONE, *SchedulingPolicy), _NONE)
    io_class = row.choice("ioClass", (_NONE, *IoClass), _NONE)
    flags = row.choices("flags", tuple(SchedulingFlag))
    if flags and policy == _NONE:
        raise BadSetting(row.at("flags"), "needs a policy")
    runtime, deadline, period = _times(row, policy)
    return SchedulingClass(
        name=name,
        policy=None if policy == _NONE else SchedulingPolicy(policy),
        priority=_ranged(row, "priority", (1, 99), _REAL_TIME, "policy"),
        flags=tuple(SchedulingFlag(flag) for flag in flags),
        nice=_ranged(row, "nice", (-20, 19), _NICE, "policy"),
        runtime=runtime,
        deadline=deadline,
        period=period,
        io_class=None if io_class == _NONE else IoClass(io_class),
        io_priority=_ranged(row, "ioPriority", (0, 7), _RANKED, "ioClass"),
    )


def _ranged(
    row: Table, key: str, limits: tuple[int, int], takers: Sequence[str], of: str
) -> int:
    """Read a number that only some policies or classes take; 0 is fine for others."""
    low, high = limits
    if row.text(of, _NONE) in takers:
        if low > 0 and key not in row.rows:
            raise BadSetting(row.at(key), f"missing, expected {low} to {high}")
        return row.number(key, low, high, 0)
    if row.number(key, min(low, 0), high, 0):
        raise BadSetting(row.at(key), f"only goes with {of} {' or '.join(takers)}")
    return 0


def _times(row: Table, policy: str) -> tuple[int, int, int]:
    """Read runtime, deadline and period; 0 is fine for other policies."""
    if policy != SchedulingPolicy.DEADLINE:
        for key in _TIMES:
            if row.rows.get(key):
                raise BadSetting(row.at(key), "only goes with policy deadline")
        return (0, 0, 0)
    for key in ("runtime", "deadline"):
        if key not in row.rows:
            raise BadSetting(row.at(key), "missing, expected nanoseconds")
    runtime, deadline, period = (
        row.number(key, _SHORTEST, _LONGEST, 0) for key in _TIMES
    )
    if not runtime <= deadline <= (period or deadline):
        raise BadSetting(row.path, "expected runtime <= deadline <= period")
    return runtime, deadline, period
