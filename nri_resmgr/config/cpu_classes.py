"""CPU classes of documents: of nri-plugins, and of CRI Resource Manager before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nri_resmgr.classes.cpu.cpu_class import (
    BadFrequency,
    CpuClass,
    Frequency,
    PctPriority,
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


def read_cpu_classes(spec: Table) -> Mapping[str, CpuClass]:
    """Read the classes of a spec (``cpuClasses``) by name, in their order.

    A frequency of 0 is as none. A preference of 0 is one: performance.

    Raises:
        BadSetting: The first mistake.
    """
    rows = spec.tables("cpuClasses", *_KEYS)
    found: dict[str, CpuClass] = {}
    for row in rows:
        name = row.name("name")
        if name in found:
            raise BadSetting(row.at("name"), f"{name!r} comes twice")
        found[name] = _read(row, name)
    _check_modes(rows)
    return found


def read_old_cpu_classes(spec: Table) -> Mapping[str, CpuClass]:
    """Read the classes of ``control.cpu.classes`` by name: frequencies are in kHz.

    A frequency of 0 is as none.

    Raises:
        BadSetting: The first mistake.

    Source:
        CRI Resource Manager, ``cpu.classes``; nri-plugins kept it.
    """
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
    if isinstance(found, str):  # a word of the driver: only the machine knows it
        return found
    return None if found is None else row.number(_EPP, 0, _MOST, 0)


def _cstates(row: Table) -> tuple[str, ...] | None:
    return row.texts(_CSTATES, ()) if _CSTATES in row.rows else None


def _priority(row: Table) -> PctPriority | None:
    word = row.choice("pctPriority", tuple(PctPriority), "")
    return PctPriority(word) if word else None


def _check_turbo(row: Table, one: CpuClass) -> None:
    if one.pct_priority and one.sst_clos is not None:
        raise BadSetting(row.at("sstClosID"), "goes with no pctPriority")
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
            raise BadSetting(path, f"only one class may be {priority}")
        if "sstClosID" in row.rows and any(priorities):
            raise BadSetting(row.at("sstClosID"), "goes with no pctPriority of others")
