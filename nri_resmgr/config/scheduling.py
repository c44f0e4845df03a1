"""Reads scheduling classes of a document, and which containers get them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

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
SCHEDULING_BY: Final = "schedulingBy"
OF_NAMESPACES: Final = "namespaceSchedulingClasses"
OF_QOS_CLASSES: Final = "podQoSSchedulingClasses"

_NONE: Final = "none"
_KEYS: Final = (
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

# Policies and classes that take a parameter; see sched(7) and ioprio_set(2).
_REAL_TIME: Final = (SchedulingPolicy.FIFO, SchedulingPolicy.RR)
_NICE: Final = (SchedulingPolicy.OTHER, SchedulingPolicy.BATCH, SchedulingPolicy.IDLE)
_RANKED: Final = (IoClass.RT, IoClass.BEST_EFFORT)

# Nanoseconds. The kernel accepts no shorter runtime (DL_SCALE,
# kernel/sched/deadline.c), and the highest bit of the other two must be 0.
_SHORTEST: Final = 1024
_LONGEST: Final = (1 << 63) - 1


def read_scheduling_by(spec: Table) -> str:
    """Read what sets classes: ``auto``, ``runtime`` or ``host``.

    Raises:
        BadSetting: It is none of these.
    """
    return spec.choice(SCHEDULING_BY, ("auto", "runtime", "host"), "auto")


def read_scheduling_classes(spec: Table) -> Mapping[str, SchedulingClass]:
    """Read the classes that a spec defines, by name.

    Raises:
        BadSetting: The kernel would not accept a class, or two have the same name.
    """
    return {name: _class(row, name) for name, row in spec.named(CLASSES, *_KEYS)}


def scheduling_warnings(spec: Table) -> Iterator[tuple[str, str]]:
    """Yield path and reason of each ``nice`` of a class without a policy.

    nri-plugins accepts such classes.
    """
    for row in spec.open_rows(CLASSES):
        if _lacks_policy(row.rows):
            yield row.at("nice"), "without a policy it applies to policy other"


def _lacks_policy(row: Mapping[str, object]) -> bool:
    return bool(row.get("nice")) and row.get("policy", _NONE) == _NONE


def read_namespace_classes(spec: Table, classes: Sequence[str]) -> Mapping[str, str]:
    """Read the classes of containers by namespace.

    Raises:
        BadSetting: A class is none of *classes*.
    """
    rows = spec.open_table(OF_NAMESPACES)
    return {key: rows.choice(key, classes, "") for key in rows.rows}


def read_qos_classes(spec: Table, classes: Sequence[str]) -> Mapping[QosClass, str]:
    """Read the classes of containers by QoS class, in any letter case.

    Raises:
        BadSetting: A class is none of *classes*, or a key is not a QoS class or
            a duplicate.
    """
    rows = spec.open_table(OF_QOS_CLASSES)
    words = {qos.lower(): qos for qos in QosClass}
    found: dict[QosClass, str] = {}
    for key in rows.rows:
        qos = words.get(key.lower())
        if qos is None or qos in found:
            known = f"expected {' or '.join(QosClass)}, in any letter case"
            what = "unknown QoS class" if qos is None else f"duplicate key {qos}"
            raise BadSetting(rows.at(key), f"{what}, {known}")
        found[qos] = rows.choice(key, classes, "")
    return found


def _class(row: Table, name: str) -> SchedulingClass:
    if _lacks_policy(row.rows):
        # What nearly every process has: its nice value is all that changes.
        row = replace(row, rows={**row.rows, "policy": SchedulingPolicy.OTHER.value})
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
    """Read a number that only some policies or classes take; others allow 0."""
    low, high = limits
    if row.text(of, _NONE) in takers:
        if low > 0:
            row.require(key, f"{low} to {high}")
        return row.number(key, low, high, 0)
    if row.number(key, min(low, 0), high, 0):
        raise BadSetting(row.at(key), f"only allowed with {of} {' or '.join(takers)}")
    return 0


def _times(row: Table, policy: str) -> tuple[int, int, int]:
    """Read runtime, deadline and period; policies other than deadline allow 0."""
    if policy != SchedulingPolicy.DEADLINE:
        for key in _TIMES:
            if row.number(key, 0, _LONGEST, 0):
                raise BadSetting(row.at(key), "only allowed with policy deadline")
        return (0, 0, 0)
    for key in ("runtime", "deadline"):
        row.require(key, "nanoseconds")
    runtime, deadline, period = (
        row.number(key, _SHORTEST, _LONGEST, 0) for key in _TIMES
    )
    if not runtime <= deadline <= (period or deadline):
        raise BadSetting(row.path, "expected runtime <= deadline <= period")
    return runtime, deadline, period
