"""CPU classes of nri-plugins' documents: names, frequencies and who may have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table

_FREQUENCIES: Final = ("minFreq", "maxFreq")
_UNCORE: Final = ("uncoreMinFreq", "uncoreMaxFreq")
_CLOS: Final = ("pctMinFreq", "pctMaxFreq")
_KEYS: Final = (
    "name",
    *_FREQUENCIES,
    *_UNCORE,
    "freqGovernor",
    "disabledCstates",
    "energyPerformancePreference",
    "turboPriority",
    "pctPriority",
    "sstClosID",
    *_CLOS,
    "publishExtendedResource",
    "dra",
)
_FREQUENCY: Final = re.compile(
    r"\s*(?:\d+(?:\.\d+)?\s*(?:[kMG]Hz)?|min|base|turbo)\s*", re.ASCII | re.IGNORECASE
)
_MOST: Final = (1 << 32) - 1


def check_cpu_classes(spec: Table) -> None:
    """Check the classes of a spec, and that those it names elsewhere are there.

    Raises:
        BadSetting: The first mistake.

    Source:
        nri-plugins, ``policy/cpuclass.go``: the same rules.
    """
    names = check_cpu_class_list(spec)
    for key in (
        "sharedPoolCPUClass",
        "reservedPoolCPUClass",
        "defaultExclusiveCPUClass",
    ):
        if spec.text(key, ""):
            spec.choice(key, names, "")
    if names and not spec.text("sharedPoolCPUClass", ""):
        path = spec.at("sharedPoolCPUClass")
        raise BadSetting(path, f"missing, expected {' or '.join(names)}")


def check_cpu_class_list(spec: Table) -> list[str]:
    """Check the classes of a spec alone; return their names.

    Raises:
        BadSetting: The first mistake.
    """
    classes = spec.tables("cpuClasses", *_KEYS)
    names: list[str] = []
    for row in classes:
        name = row.name("name")
        if name in names:
            raise BadSetting(row.at("name"), f"{name!r} comes twice")
        names.append(name)
        _check_values(row)
        _check_turbo(row)
    _check_modes(classes)
    return names


def _check_values(row: Table) -> None:
    for key in (*_FREQUENCIES, *_UNCORE, *_CLOS):
        text = row.amount(key)
        if text is not None and not _FREQUENCY.fullmatch(text):
            raise BadSetting(
                row.at(key), f"expected 3.2GHz, 2900MHz, kHz or a word, not {text!r}"
            )
    row.text("freqGovernor", "")
    row.texts("disabledCstates", ())
    row.number("energyPerformancePreference", 0, _MOST, 0)
    row.number("turboPriority", 0, _MOST, 0)
    row.number("sstClosID", 0, _MOST, 0)
    row.flag("publishExtendedResource", default=False)
    row.table("dra", "publish").flag("publish", default=False)


def _check_turbo(row: Table) -> None:
    priority = row.choice("pctPriority", ("high", "low"), "")
    if priority and "sstClosID" in row.rows:
        raise BadSetting(row.at("sstClosID"), "goes with no pctPriority")
    for key in _CLOS:
        if key in row.rows and not priority:
            raise BadSetting(row.at(key), "needs pctPriority high or low")
    managed = bool(priority) or "sstClosID" in row.rows
    if row.flag("publishExtendedResource", default=False) and not managed:
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
