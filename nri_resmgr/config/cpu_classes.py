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
from nri_resmgr.config.table import (
    Fields,
    Table,
    read_fields,
    read_flag,
    read_number,
    read_text,
)
from nri_resmgr.values import KiloHertz

_CLOS: Final = ("pctMinFreq", "pctMaxFreq")
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
    """
    rows = dict(spec.named("cpuClasses", *_FIELDS, "dra"))
    found = {name: _read(row, name) for name, row in rows.items()}
    _check_modes(tuple(rows.values()))
    return found


def read_old_cpu_classes(spec: Table) -> Mapping[str, CpuClass]:
    """Read the classes of ``control.cpu.classes`` by name: frequencies are in kHz.

    A frequency of 0 means none.

    Source:
        CRI Resource Manager, ``cpu.classes``; nri-plugins kept it.
    """
    # The other keys of control are read by `nri_resmgr.config.policy_config`.
    control = spec.table("control", "cpu", "rdt", "blockio")
    classes = control.table("cpu", "classes").open_table("classes")
    found: dict[str, CpuClass] = {}
    for name in classes.rows:
        row, defaults = classes.table(name, *_OLD_FIELDS), CpuClass(name=name)
        fields = read_fields(row, _OLD_FIELDS, defaults)
        found[name] = msgspec.structs.replace(defaults, **fields)
    return found


def _read(row: Table, name: str) -> CpuClass:
    defaults = CpuClass(name=name)
    fields = read_fields(row, _FIELDS, defaults)
    found = msgspec.structs.replace(defaults, **fields)
    row.table("dra", "publish").flag("publish")
    _check_turbo(row, found)
    return found


def _kilohertz(row: Table, key: str, _: object) -> KiloHertz | None:
    return KiloHertz(row.number(key, 0, _MOST, 0)) or None


def _frequency(row: Table, key: str, _: object) -> Frequency | None:
    text = row.amount(key)
    try:
        return None if text is None else parse_frequency(text)
    except BadFrequency as error:
        raise BadSetting(row.at(key), str(error)) from None


def _number(row: Table, key: str, _: object) -> int | None:
    return row.number(key, 0, _MOST, 0) if key in row.rows else None


def _preference(row: Table, key: str, _: object) -> str | int | None:
    found = row.raw(key, str, int)
    # A word of the driver is validated on the machine.
    return found if isinstance(found, str) else _number(row, key, None)


def _cstates(row: Table, key: str, _: object) -> tuple[str, ...] | None:
    return row.texts(key) if key in row.rows else None


def _priority(row: Table, key: str, _: object) -> PctPriority | None:
    word = row.choice(key, tuple(PctPriority), "")
    return PctPriority(word) if word else None


_OLD_FIELDS: Final[Fields] = {
    "minFreq": ("min", _kilohertz),
    "maxFreq": ("max", _kilohertz),
    "uncoreMinFreq": ("uncore_min", _kilohertz),
    "uncoreMaxFreq": ("uncore_max", _kilohertz),
    "freqGovernor": ("governor", read_text),
    "disabledCstates": ("disabled_cstates", _cstates),
    "energyPerformancePreference": ("epp", _number),
}
_FIELDS: Final[Fields] = {
    "minFreq": ("min", _frequency),
    "maxFreq": ("max", _frequency),
    "uncoreMinFreq": ("uncore_min", _frequency),
    "uncoreMaxFreq": ("uncore_max", _frequency),
    "freqGovernor": ("governor", read_text),
    "disabledCstates": ("disabled_cstates", _cstates),
    "energyPerformancePreference": ("epp", _preference),
    "turboPriority": ("turbo_priority", read_number(0, _MOST)),
    "pctPriority": ("pct_priority", _priority),
    "sstClosID": ("sst_clos", _number),
    "pctMinFreq": ("pct_min", _frequency),
    "pctMaxFreq": ("pct_max", _frequency),
    "publishExtendedResource": ("is_published", read_flag),
}


def _check_turbo(row: Table, one: CpuClass) -> None:
    if one.pct_priority and one.sst_clos is not None:
        raise BadSetting(row.at("sstClosID"), "not allowed with pctPriority")
    for key in _CLOS:
        if key in row.rows and not one.pct_priority:
            raise BadSetting(row.at(key), "needs pctPriority high or low")
    if one.is_published and not one.pct_priority and one.sst_clos is None:
        path = row.at("publishExtendedResource")
        raise BadSetting(path, "needs pctPriority or sstClosID")
    if one.is_published:
        # Late, as its other readers: few documents publish anything.
        from nri_resmgr.config.publishing import check_name

        check_name(row.at("name"), one.name)


def _check_modes(classes: Sequence[Table]) -> None:
    priorities = [row.text("pctPriority") for row in classes]
    for row, priority in zip(classes, priorities, strict=True):
        if priority and priorities.count(priority) > 1:
            path = row.at("pctPriority")
            raise BadSetting(path, f"only one class may have priority {priority}")
        if "sstClosID" in row.rows and any(priorities):
            why = "not allowed with pctPriority of other classes"
            raise BadSetting(row.at("sstClosID"), why)


def read_of_topology_aware(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``TopologyAwarePolicy``; None where there are none.

    Source:
        nri-plugins, ``policy/cpuclass.go``: the same rules.
    """
    classes = read_cpu_classes(spec)
    names = tuple(classes)
    shared, reserved, exclusive = (
        spec.choice(key, names, "") if spec.text(key) else "" for key in _POOL_CLASSES
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
    """Read the classes of a ``BalloonsPolicy``; None where there are none."""
    domain = spec.choice("turboDomain", tuple(TurboDomain), TurboDomain.PACKAGE)
    classes, paths = _old_and_new(spec)
    names = tuple(classes)
    if not classes:
        return None
    for table, key in _named_by_balloons(spec):
        table.choice(key, names, "")
    idle = spec.text("idleCPUClass", _DEFAULT if _DEFAULT in names else "")
    return CpuClassUse(
        classes=classes,
        paths=paths,
        domain=TurboDomain(domain),
        idle=idle,
    )


def read_of_dynamic_pools(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``DynamicPoolsPolicy``; None where there are none."""
    classes, paths = _old_and_new(spec)
    return CpuClassUse(classes=classes, paths=paths) if classes else None


def _old_and_new(spec: Table) -> tuple[dict[str, CpuClass], dict[str, str]]:
    """Read classes of both notations, and their places in the document."""
    old, new = read_old_cpu_classes(spec), read_cpu_classes(spec)
    paths = {name: f"{spec.at('control')}.cpu.classes.{name}" for name in old}
    # Of the same name the new notation wins.
    return {**old, **new}, paths | _paths(spec, new)


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
    rows += [(row, "cpuClass") for row in spec.open_rows("balloonTypes")]
    return ((table, key) for table, key in rows if table.text(key))


def not_published(spec: Table) -> Iterator[str]:
    """Yield the paths of resource allocation by class; it is not implemented."""
    for row in spec.open_rows("cpuClasses"):
        if row.rows.get("dra"):
            yield row.at("dra")
