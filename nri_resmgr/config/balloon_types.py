"""Reads and validates the balloon types of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import IrqRule
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.interrupts import read_irq_rule
from nri_resmgr.config.node_topology import SHOW_CONTAINERS
from nri_resmgr.config.table import (
    Fields,
    Table,
    read_choice,
    read_fields,
    read_flag,
    read_number,
    read_text,
    read_texts,
)
from nri_resmgr.values import CpuSet, InputError

RESERVED: Final = "reserved"
"""The built-in type of the node's own containers."""

# Not allowed in a composite type, whose CPUs are those of its components.
_NOT_OF_COMPOSITES: Final = (
    "cpus",
    "preferCloseToDevices",
    "preferFarFromDevices",
    "preferIsolCpus",
    "preferCoreType",
    "allocatorTopologyBalancing",
    "preferSpreadOnPhysicalCores",
    "loads",
    "cpuClass",
)
_NOT_WITH_CPUS: Final = ("minCPUs", "maxCPUs", "minBalloons", "maxBalloons")

_MOST: Final = 1 << 16
_SHARE: Final = ("system", "package", "die", "numa", "l2cache", "core", "thread")
_KINDS: Final = ("dram", "hbm", "pmem", "cxl")


class ExpressionConfig(msgspec.Struct, frozen=True):
    """An expression about containers, not validated yet.

    Attributes:
        path: Its place in the document, for errors.
    """

    key: str
    operator: str
    values: tuple[str, ...]
    path: str


class BalloonTypeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``balloonTypes``; None stands for the default of the policy.

    Attributes:
        path: Its place in the document.
        cpus: The explicit CPUs of each balloon, if any.
        max_cpus: 0 for no limit, below 0 for no CPUs at all.
        max_balloons: 0 for no limit.
    """

    path: str
    name: str
    components: tuple[str, ...] = ()
    balance_components: bool = False
    namespaces: tuple[str, ...] = ()
    expressions: tuple[ExpressionConfig, ...] = ()
    group_by: str = ""
    cpus: tuple[CpuSet, ...] = ()
    min_cpus: int = 0
    max_cpus: int = 0
    min_balloons: int = 0
    max_balloons: int = 0
    spread_pods: bool = False
    per_namespace: bool = False
    prefer_new: bool = False
    share_idle: str = ""
    close_to: tuple[str, ...] = ()
    far_from: tuple[str, ...] = ()
    prefer_isolated: bool = False
    core_type: str = ""
    hide_hyperthreads: bool = False
    topology_balancing: bool | None = None
    spread_on_cores: bool | None = None
    priority: str = "high"
    loads: tuple[str, ...] = ()
    memory_types: tuple[str, ...] = ()
    pin_memory: bool | None = None
    scheduling_class: str = ""
    cpu_class: str = ""
    interrupts: IrqRule | None = None
    rdt_class: str = ""
    blockio_class: str = ""


class ClassNames(msgspec.Struct, frozen=True):
    """Names of the load classes and scheduling classes that types may use."""

    loads: tuple[str, ...]
    scheduling: tuple[str, ...]


def read_balloon_types(spec: Table, names: ClassNames) -> tuple[BalloonTypeConfig, ...]:
    """Read ``balloonTypes``."""
    found = {
        name: _type(row, name, names)
        for name, row in spec.named("balloonTypes", *_KEYS)
    }
    _check_components(found)
    return tuple(found.values())


def read_expressions(
    table: Table, key: str, _: object = None
) -> tuple[ExpressionConfig, ...]:
    """Read a list of expressions; the builder of the policy validates them."""
    return tuple(
        ExpressionConfig(
            row.text("key"), row.name("operator"), row.texts("values"), row.path
        )
        for row in table.tables(key, "key", "operator", "values")
    )


def _type(row: Table, name: str, names: ClassNames) -> BalloonTypeConfig:
    defaults = BalloonTypeConfig(path=row.path, name=name)
    found = msgspec.structs.replace(
        defaults,
        loads=row.choices("loads", names.loads),
        interrupts=_interrupts(row),
        **read_fields(row, _FIELDS, defaults),
    )
    row.flag(SHOW_CONTAINERS)  # `read_node_topology` reads them all
    _check_sizes(found)
    _check_keys(row, found)
    if row.rows.get("schedulingClass"):
        row.choice("schedulingClass", names.scheduling, "")
    return found


def _interrupts(row: Table) -> IrqRule | None:
    if not row.rows.keys() & {"irqClaim", "irqMode"}:
        return None
    rule = read_irq_rule(row)
    return rule if rule.claim or rule.mode else None


def _components(row: Table, key: str, _: object) -> tuple[str, ...]:
    parts = row.tables(key, "balloonType")
    return tuple(part.name("balloonType") for part in parts)


def _is_balanced(row: Table, key: str, _: object) -> bool:
    return row.choice(key, ("all", "balance-balloons"), "all") != "all"


def _optional_flag(row: Table, key: str, _: object) -> bool | None:
    # None where absent: the default is that of the whole policy, not false.
    return row.flag(key) if key in row.rows else None


def _kinds(row: Table, key: str, _: object) -> tuple[str, ...]:
    # In any letter case, as nri-plugins reads them: "DRAM" is common.
    return row.choices(key, _KINDS, any_case=True)


def _explicit_cpus(row: Table, key: str, _: object) -> tuple[CpuSet, ...]:
    # One set for the only balloon, or a list with one set for each balloon. A single
    # CPU is a number in YAML.
    if not isinstance(row.raw(key, str, int, list), list):
        text = row.amount(key)
        return () if text is None else (_listed(text, row.at(key)),)
    texts = row.texts(key)
    paths = (f"{row.at(key)}[{place}]" for place in range(len(texts)))
    return tuple(_listed(text, path) for text, path in zip(texts, paths, strict=True))


_FIELDS: Final[Fields] = {
    "components": ("components", _components),
    "componentCreation": ("balance_components", _is_balanced),
    "namespaces": ("namespaces", read_texts),
    "matchExpressions": ("expressions", read_expressions),
    "groupBy": ("group_by", read_text),
    "minCPUs": ("min_cpus", read_number(0, _MOST)),
    # Negative: nri-plugins' notation for a type without CPUs; 0 is no limit.
    "maxCPUs": ("max_cpus", read_number(-_MOST, _MOST)),
    "minBalloons": ("min_balloons", read_number(0, _MOST)),
    "maxBalloons": ("max_balloons", read_number(0, _MOST)),
    "preferSpreadingPods": ("spread_pods", read_flag),
    "preferPerNamespaceBalloon": ("per_namespace", read_flag),
    "preferNewBalloons": ("prefer_new", read_flag),
    "shareIdleCPUsInSame": ("share_idle", read_choice("", *_SHARE)),
    "hideHyperthreads": ("hide_hyperthreads", read_flag),
    "allocatorPriority": ("priority", read_choice("high", "normal", "low", "none")),
    "memoryTypes": ("memory_types", _kinds),
    "pinMemory": ("pin_memory", _optional_flag),
    "schedulingClass": ("scheduling_class", read_text),
    "rdtClass": ("rdt_class", read_text),
    "blockioClass": ("blockio_class", read_text),
    "cpus": ("cpus", _explicit_cpus),
    "preferCloseToDevices": ("close_to", read_texts),
    "preferFarFromDevices": ("far_from", read_texts),
    "preferIsolCpus": ("prefer_isolated", read_flag),
    "preferCoreType": ("core_type", read_choice("performance", "efficient")),
    "allocatorTopologyBalancing": ("topology_balancing", _optional_flag),
    "preferSpreadOnPhysicalCores": ("spread_on_cores", _optional_flag),
    "cpuClass": ("cpu_class", read_text),
}
_KEYS: Final = (*_FIELDS, "loads", "irqClaim", "irqMode", SHOW_CONTAINERS)


def _listed(text: str, path: str) -> CpuSet:
    try:
        cpus = CpuSet.parse(text.removeprefix("cpuset:"))
    except InputError as error:
        raise BadSetting(path, str(error)) from None
    if not cpus:
        raise BadSetting(path, "expected CPUs, as in 4-7")
    return cpus


def _check_sizes(found: BalloonTypeConfig) -> None:
    for low, high, name in (
        (found.min_cpus, found.max_cpus, "CPUs"),
        (found.min_balloons, found.max_balloons, "Balloons"),
    ):
        if high and low > max(high, 0):
            path = f"{found.path}.min{name}"
            raise BadSetting(path, f"{low} is more than max{name} ({high})")
    if found.name == RESERVED:
        for key, count in (
            ("minBalloons", found.min_balloons),
            ("maxBalloons", found.max_balloons),
        ):
            if count > 1:
                path = f"{found.path}.{key}"
                why = f"expected at most 1 for type {RESERVED}, not {count}"
                raise BadSetting(path, why)


def _check_keys(row: Table, found: BalloonTypeConfig) -> None:
    if "componentCreation" in row.rows and not found.components:
        raise BadSetting(row.at("componentCreation"), "needs components")
    if found.components:
        _refuse(row, _NOT_OF_COMPOSITES, "not allowed with components")
    if found.cpus:
        _refuse(row, _NOT_WITH_CPUS, "not allowed with cpus, which determine it")


def _refuse(row: Table, keys: Sequence[str], why: str) -> None:
    for key in keys:
        if key in row.rows:
            raise BadSetting(row.at(key), why)


def _check_components(types: Mapping[str, BalloonTypeConfig]) -> None:
    known = (*types, RESERVED, "default")  # the built-in types need not be listed
    for one in types.values():
        for place, name in enumerate(one.components):
            path = f"{one.path}.components[{place}]"
            Table(path, {"balloonType": name}).choice("balloonType", known, "")
            # Components are made on demand; explicit CPUs fix the number of balloons.
            if name in types and types[name].cpus:
                why = f"{name!r} has explicit cpus, so it cannot be a component"
                raise BadSetting(f"{path}.balloonType", why)
            # Creating such a balloon would never end.
            if _contains(name, one.name, types):
                why = f"{name!r} itself contains {one.name!r}"
                raise BadSetting(f"{path}.balloonType", why)


def type_warnings(types: Sequence[BalloonTypeConfig]) -> Iterator[tuple[str, str]]:
    """Yield path and reason of valid settings with an unexpected effect."""
    mixed = (
        "with preferIsolCpus containers run on isolated and other CPUs, "
        "between which the kernel moves no process"
    )
    for one in types:
        if one.prefer_isolated and one.share_idle:
            yield f"{one.path}.shareIdleCPUsInSame", mixed


def _contains(start: str, wanted: str, types: Mapping[str, BalloonTypeConfig]) -> bool:
    """Return whether a type has another one for a component, at any depth."""
    seen, ahead = set[str](), [start]
    while ahead:
        name = ahead.pop()
        if name == wanted:
            return True
        if name not in seen and name in types:
            seen.add(name)
            ahead += types[name].components
    return False
