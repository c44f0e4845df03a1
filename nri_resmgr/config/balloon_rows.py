"""Reading the balloon types of a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nri_resmgr.classes.irq.requests import IrqRule
from nri_resmgr.config.balloon_rules import (
    NOT_OF_COMPOSITES,
    check_components,
    check_keys,
    check_sizes,
)
from nri_resmgr.config.balloon_types import BalloonTypeConfig, ExpressionConfig
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import CpuSet, InputError

NOT_IN_FORCE: Final = ("showContainersInNrt",)
"""Keys of a type that nothing follows yet."""

_MOST: Final = 1 << 16
_SHARE: Final = ("system", "package", "die", "numa", "l2cache", "core", "thread")
_KINDS: Final = ("dram", "hbm", "pmem", "cxl")

_KEYS: Final = (
    "name",
    "components",
    "componentCreation",
    "namespaces",
    "matchExpressions",
    "groupBy",
    "minCPUs",
    "maxCPUs",
    "minBalloons",
    "maxBalloons",
    "preferSpreadingPods",
    "preferPerNamespaceBalloon",
    "preferNewBalloons",
    "shareIdleCPUsInSame",
    "hideHyperthreads",
    "allocatorPriority",
    "memoryTypes",
    "pinMemory",
    "schedulingClass",
    "irqClaim",
    "irqMode",
    "rdtClass",
    "blockioClass",
    *NOT_OF_COMPOSITES,
    *NOT_IN_FORCE,
)


class Names(msgspec.Struct, frozen=True):
    """Names of load classes and of scheduling classes that types may use."""

    loads: tuple[str, ...]
    scheduling: tuple[str, ...]


def read_balloon_types(spec: Table, names: Names) -> tuple[BalloonTypeConfig, ...]:
    """Read ``balloonTypes``.

    Raises:
        BadSetting: The first problem met; its ``path`` says where.
    """
    rows = spec.tables("balloonTypes", *_KEYS)
    found: dict[str, BalloonTypeConfig] = {}
    for row in rows:
        name = row.name("name")
        if name in found:
            raise BadSetting(row.at("name"), f"{name!r} comes twice")
        found[name] = _type(row, name, names)
    check_components(found)
    return tuple(found.values())


def read_expressions(table: Table, key: str) -> tuple[ExpressionConfig, ...]:
    """Read a list of expressions; whether they make sense is judged elsewhere."""
    return tuple(
        ExpressionConfig(
            row.text("key", ""),
            row.name("operator"),
            row.texts("values", ()),
            row.path,
        )
        for row in table.tables(key, "key", "operator", "values")
    )


def _type(row: Table, name: str, names: Names) -> BalloonTypeConfig:
    fitting = BalloonTypeConfig(
        path=row.path, name=name, **_who(row), **_size(row), **_cpus(row, names.loads)
    )
    _check_ignored(row)
    check_sizes(fitting)
    check_keys(row, fitting)
    if row.rows.get("schedulingClass"):
        row.choice("schedulingClass", names.scheduling, "")
    return fitting


def _who(row: Table) -> dict[str, Any]:
    parts = row.tables("components", "balloonType")
    return {
        "components": tuple(part.name("balloonType") for part in parts),
        "balance_components": row.choice(
            "componentCreation", ("all", "balance-balloons"), "all"
        )
        != "all",
        "namespaces": row.texts("namespaces", ()),
        "expressions": read_expressions(row, "matchExpressions"),
        "group_by": row.text("groupBy", ""),
        "spread_pods": row.flag("preferSpreadingPods", default=False),
        "per_namespace": row.flag("preferPerNamespaceBalloon", default=False),
        "prefer_new": row.flag("preferNewBalloons", default=False),
        "scheduling_class": row.text("schedulingClass", ""),
        "cpu_class": row.text("cpuClass", ""),
        "interrupts": _interrupts(row),
        "rdt_class": row.text("rdtClass", ""),
        "blockio_class": row.text("blockioClass", ""),
    }


def _size(row: Table) -> dict[str, Any]:
    return {
        "min_cpus": row.number("minCPUs", 0, _MOST, 0),
        "max_cpus": row.number("maxCPUs", -_MOST, _MOST, 0),
        "min_balloons": row.number("minBalloons", 0, _MOST, 0),
        "max_balloons": row.number("maxBalloons", 0, _MOST, 0),
        "memory_types": _kinds(row),
        "pin_memory": _flag(row, "pinMemory"),
    }


def _cpus(row: Table, loads: Sequence[str]) -> dict[str, Any]:
    return {
        "cpus": _explicit(row),
        "share_idle": row.choice("shareIdleCPUsInSame", ("", *_SHARE), ""),
        "close_to": row.texts("preferCloseToDevices", ()),
        "far_from": row.texts("preferFarFromDevices", ()),
        "prefer_isolated": row.flag("preferIsolCpus", default=False),
        "core_type": row.choice("preferCoreType", ("performance", "efficient"), ""),
        "hide_hyperthreads": row.flag("hideHyperthreads", default=False),
        "topology_balancing": _flag(row, "allocatorTopologyBalancing"),
        "spread_on_cores": _flag(row, "preferSpreadOnPhysicalCores"),
        "priority": row.choice(
            "allocatorPriority", ("high", "normal", "low", "none"), "high"
        ),
        "loads": row.choices("loads", loads),
    }


def _interrupts(row: Table) -> IrqRule | None:
    if not row.rows.get("irqClaim") and not row.rows.get("irqMode"):
        return None
    from nri_resmgr.config.interrupts import read_irq_rule  # few documents have any

    return read_irq_rule(row)


def _flag(row: Table, key: str) -> bool | None:
    return row.flag(key, default=False) if key in row.rows else None


def _kinds(row: Table) -> tuple[str, ...]:
    lower = [text.lower() for text in row.texts("memoryTypes", ())]
    return Table(row.path, {"memoryTypes": lower}).choices("memoryTypes", _KINDS)


def _explicit(row: Table) -> tuple[CpuSet, ...]:
    if not isinstance(row.rows.get("cpus"), list):
        text = row.amount("cpus")
        return () if text is None else (_listed(text, row.at("cpus")),)
    texts = row.texts("cpus", ())
    paths = (f"{row.at('cpus')}[{place}]" for place in range(len(texts)))
    return tuple(_listed(text, path) for text, path in zip(texts, paths, strict=True))


def _listed(text: str, path: str) -> CpuSet:
    try:
        cpus = CpuSet.parse(text.removeprefix("cpuset:"))
    except InputError as error:
        raise BadSetting(path, str(error)) from None
    if not cpus:
        raise BadSetting(path, "no CPU is listed, expected some as in 4-7")
    return cpus


def _check_ignored(row: Table) -> None:
    row.flag("showContainersInNrt", default=False)
