"""Converts the options of CRI Resource Manager's balloons policy."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.migrate.section import Section
from nri_resmgr.values.documents import JsonObject

_TYPES: Final = "balloonTypes"
_POOLS: Final = "pools"
_CLASS: Final = "cpuClass"
_IDLE: Final = "idleCPUClass"
_DEFAULT: Final = "default"

_OPTIONS: Final = {
    "PinCPU": "pinCPU",
    "PinMemory": "pinMemory",
    "IdleCPUClass": _IDLE,
    "ReservedPoolNamespaces": "reservedPoolNamespaces",
    "AllocatorTopologyBalancing": "allocatorTopologyBalancing",
    "PreferSpreadOnPhysicalCores": "preferSpreadOnPhysicalCores",
}
_OF_TYPE: Final = {
    "Name": "name",
    "Namespaces": "namespaces",
    "MinCPUs": "minCPUs",
    "MaxCPUs": "maxCPUs",
    "MinBalloons": "minBalloons",
    "MaxBalloons": "maxBalloons",
    "CPUClass": _CLASS,
    "PreferSpreadingPods": "preferSpreadingPods",
    "PreferPerNamespaceBalloon": "preferPerNamespaceBalloon",
    "PreferNewBalloons": "preferNewBalloons",
    "ShareIdleCPUsInSame": "shareIdleCPUsInSame",
    "AllocatorTopologyBalancing": "allocatorTopologyBalancing",
    "PreferSpreadOnPhysicalCores": "preferSpreadOnPhysicalCores",
}
_PRIORITIES: Final = ("high", "normal", "low", "none")
_PRIORITY: Final = "AllocatorPriority"
_NO_EFFECT: Final = "unknown key, which CRI Resource Manager ignored as well"


def read_balloons(options: Section) -> JsonObject:
    """Read the options into a spec; class names are validated later."""
    spec = options.copy(_OPTIONS)
    # Keys in lists have any letter case, and unknown ones had no effect.
    if rows := options.sections("BalloonTypes", any_case=True):
        spec[_TYPES] = [_type(row) for row in rows]
    return spec


def _type(row: Section) -> JsonObject:
    found = {**row.copy(_OF_TYPE), **read_priority(row)}
    row.note_rest(_NO_EFFECT)
    return found


def read_priority(row: Section) -> JsonObject:
    """Read the priority of CPUs, which is a number there."""
    priority = row.take(_PRIORITY)
    if priority is None:
        return {}
    if not isinstance(priority, int) or not 0 <= priority < len(_PRIORITIES):
        raise BadSetting(row.at(_PRIORITY), f"expected 0 to 3, not {priority!r}")
    return {"allocatorPriority": _PRIORITIES[priority]}


def keep_known_classes(spec: JsonObject, classes: JsonObject, at: Section) -> None:
    """Fit the names of CPU classes in *spec* to the classes that are defined.

    It is that of balloons or of dynamic pools.
    """
    rows = [*spec.get(_TYPES, ()), *spec.get(_POOLS, ())]
    for row, key in [(spec, _IDLE), *((row, _CLASS) for row in rows)]:
        if row.get(key) and row[key] not in classes:
            at.note(str(row[key]), "no such class, though the policy's options name it")
            del row[key]
    if _DEFAULT in classes and _POOLS not in spec:
        # Here idle CPUs would get the class of this name, there they got none.
        spec.setdefault(_IDLE, "")
