"""Reads CPU classes of nri-plugins and of CRI Resource Manager, and their use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import (
    BadFrequency,
    CpuClass,
    Frequency,
    PctPriority,
    TurboDomain,
    parse_frequency,
)
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import KiloHertz

_FREQUENCIES: Final = ("minFreq", "maxFreq")
_UNCORE: Final = ("uncoreMinFreq", "uncoreMaxFreq")
_CLOS: Final = ("pctMinFreq", "pctMaxFreq")
_EPP: Final = "energyPerformancePreference"
_CSTATES: Final = "disabledCstates"
_OLD_KEYS: Final = (*_FREQUENCIES, *_UNCORE, "freqGovernor", _CSTATES, _EPP)
_KEYS: Final = (
    "name",
    *_OLD_KEYS,
    "turboPriority",
    "pctPriority",
    "sstClosID",
    *_CLOS,
    "publishExtendedResource",
    "dra",
)
_MOST: Final = (1 << 32) - 1
_POOL_CLASSES: Final = (
    "sharedPoolCPUClass",
    "reservedPoolCPUClass",
    "defaultExclusiveCPUClass",
)

# CRI Resource Manager's name of the class of idle CPUs.
_DEFAULT: Final = "default"


class CpuClassUse(msgspec.Struct, frozen=True, kw_only=True):
    """CPU classes, and the names of those that CPUs get by default.

    Attributes:
        classes: By name; not empty.
        paths: Their places in the document, by name.
        domain: The domain in which classes compete for turbo.
        shared: Class of shared CPUs.
        reserved: Class of reserved CPUs; empty for that of shared ones.
        exclusive: Class of exclusive CPUs of containers that request none; empty for
            that of shared ones.
        idle: Class of CPUs of no balloon; empty where these are not changed.
    """

    classes: Mapping[str, CpuClass]
    paths: Mapping[str, str] = {}
    domain: TurboDomain = TurboDomain.PACKAGE
    shared: str = ""
    reserved: str = ""
    exclusive: str = ""
    idle: str = ""


def read_cpu_classes(spec: Table) -> Mapping[str, CpuClass]:
    """Read the classes of a spec (``cpuClasses``) by name, in their order.

    A frequency of 0 means none. An energy preference of 0 does not: it is performance.

    Raises:
        BadSetting: The first error.
    """
    rows = spec.tables("cpuClasses", *_KEYS)
    found: dict[str, CpuClass] = {}
    for row in rows:
        name = row.name("name")
        if name in found:
            raise BadSetting(row.at("name"), f"duplicate name {name!r}")
        found[name] = _read(row, name)
    _check_modes(rows)
    return found


def read_old_cpu_classes(spec: Table) -> Mapping[str, CpuClass]:
    """Read the classes of ``control.cpu.classes`` by name: frequencies are in kHz.

    A frequency of 0 means none.

    Raises:
        BadSetting: The first error.

    Source:
        CRI Resource Manager, ``cpu.classes``; nri-plugins kept it.
    """
    # The other keys of control are read by `nri_resmgr.config.policy_config`.
    control = spec.table("control", "cpu", "rdt", "blockio")
    classes = control.table("cpu", "classes").open_table("classes")
    return {name: _read_old(classes, name) for name in classes.rows}


def _read_old(classes: Table, name: str) -> CpuClass:
    row = classes.table(name, *_OLD_KEYS)
    low, high, uncore_low, uncore_high = (
        KiloHertz(row.number(key, 0, _MOST, 0)) or None
        for key in (*_FREQUENCIES, *_UNCORE)
    )
    return CpuClass(
        name=name,
        min=low,
        max=high,
        uncore_min=uncore_low,
        uncore_max=uncore_high,
        epp=row.number(_EPP, 0, _MOST, 0) if _EPP in row.rows else None,
        governor=row.text("freqGovernor", ""),
        disabled_cstates=_cstates(row),
    )


def _read(row: Table, name: str) -> CpuClass:
    low, high, uncore_low, uncore_high, pct_low, pct_high = (
        _frequency(row, key) for key in (*_FREQUENCIES, *_UNCORE, *_CLOS)
    )
    found = CpuClass(
        name=name,
        min=low,
        max=high,
        governor=row.text("freqGovernor", ""),
        disabled_cstates=_cstates(row),
        epp=_preference(row),
        uncore_min=uncore_low,
        uncore_max=uncore_high,
        turbo_priority=row.number("turboPriority", 0, _MOST, 0),
        sst_clos=row.number("sstClosID", 0, _MOST, 0)
        if "sstClosID" in row.rows
        else None,
        is_published=row.flag("publishExtendedResource", default=False),
        pct_priority=_priority(row),
        pct_min=pct_low,
        pct_max=pct_high,
    )
    row.table("dra", "publish").flag("publish", default=False)
    _check_turbo(row, found)
    return found


def _frequency(row: Table, key: str) -> Frequency | None:
    text = row.amount(key)
    try:
        return None if text is None else parse_frequency(text)
    except BadFrequency as error:
        raise BadSetting(row.at(key), str(error)) from None


def _preference(row: Table) -> str | int | None:
    found = row.rows.get(_EPP)
    if isinstance(found, str):  # a word of the driver, validated on the machine
        return found
    return None if found is None else row.number(_EPP, 0, _MOST, 0)


def _cstates(row: Table) -> tuple[str, ...] | None:
    return row.texts(_CSTATES, ()) if _CSTATES in row.rows else None


def _priority(row: Table) -> PctPriority | None:
    word = row.choice("pctPriority", tuple(PctPriority), "")
    return PctPriority(word) if word else None


def _check_turbo(row: Table, one: CpuClass) -> None:
    if one.pct_priority and one.sst_clos is not None:
        raise BadSetting(row.at("sstClosID"), "not allowed with pctPriority")
    for key in _CLOS:
        if key in row.rows and not one.pct_priority:
            raise BadSetting(row.at(key), "needs pctPriority high or low")
    if one.is_published and not one.pct_priority and one.sst_clos is None:
        path = row.at("publishExtendedResource")
        raise BadSetting(path, "needs pctPriority or sstClosID")


def _check_modes(classes: Sequence[Table]) -> None:
    priorities = [row.text("pctPriority", "") for row in classes]
    for row, priority in zip(classes, priorities, strict=True):
        if priority and priorities.count(priority) > 1:
            path = row.at("pctPriority")
            raise BadSetting(path, f"only one class may have priority {priority}")
        if "sstClosID" in row.rows and any(priorities):
            why = "not allowed with pctPriority of other classes"
            raise BadSetting(row.at("sstClosID"), why)


def read_of_topology_aware(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``TopologyAwarePolicy``; None where there are none.

    Raises:
        BadSetting: The first error.

    Source:
        nri-plugins, ``policy/cpuclass.go``: the same rules.
    """
    classes = read_cpu_classes(spec)
    names = tuple(classes)
    shared, reserved, exclusive = (
        spec.choice(key, names, "") if spec.text(key, "") else ""
        for key in _POOL_CLASSES
    )
    if not classes:
        return None
    # Required where any class is defined, as in nri-plugins.
    if not shared:
        path = spec.at("sharedPoolCPUClass")
        raise BadSetting(path, f"missing, expected {' or '.join(names)}")
    return CpuClassUse(
        classes=classes,
        paths=_paths(spec, classes),
        shared=shared,
        reserved=reserved,
        exclusive=exclusive,
    )


def read_of_balloons(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``BalloonsPolicy``; None where there are none.

    Raises:
        BadSetting: The first error.
    """
    domain = spec.choice("turboDomain", tuple(TurboDomain), TurboDomain.PACKAGE)
    old, new = read_old_cpu_classes(spec), read_cpu_classes(spec)
    classes = {**old, **new}  # of the same name the new notation wins
    names = tuple(classes)
    if not classes:
        return None
    for table, key in _named_by_balloons(spec):
        table.choice(key, names, "")
    idle = spec.text("idleCPUClass", _DEFAULT if _DEFAULT in names else "")
    paths = {name: f"{spec.at('control')}.cpu.classes.{name}" for name in old}
    return CpuClassUse(
        classes=classes,
        paths=paths | _paths(spec, new),
        domain=TurboDomain(domain),
        idle=idle,
    )


def _paths(spec: Table, classes: Iterable[str]) -> dict[str, str]:
    at = spec.at("cpuClasses")
    return {name: f"{at}[{place}]" for place, name in enumerate(classes)}


def class_warnings(spec: Table) -> Iterator[tuple[str, str]]:
    """Yield path and reason of the class names of a spec that defines no class.

    Only warnings: nri-plugins accepts names of classes that are not defined.
    """
    for table, key in _named_by_balloons(spec):
        yield table.at(key), "no CPU class is defined, so no CPU settings are changed"


def _named_by_balloons(spec: Table) -> Iterator[tuple[Table, str]]:
    rows = [(spec, "idleCPUClass")]
    rows += [
        (Table(f"{spec.at('balloonTypes')}[{place}]", row), "cpuClass")
        for place, row in enumerate(spec.open_rows("balloonTypes"))
    ]
    return ((table, key) for table, key in rows if table.text(key, ""))


def not_published(spec: Table) -> Iterator[str]:
    """Yield the paths of what should be published to the cluster; not implemented."""
    for place, row in enumerate(spec.open_rows("cpuClasses")):
        for key in ("publishExtendedResource", "dra"):
            if row.get(key):
                yield f"{spec.at('cpuClasses')}[{place}].{key}"
