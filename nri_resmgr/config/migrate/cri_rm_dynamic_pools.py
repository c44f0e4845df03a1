"""Converts the options of CRI Resource Manager's dynamic-pools policy."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.migrate.cri_rm_balloons import read_priority
from nri_resmgr.config.migrate.section import Section
from nri_resmgr.values.documents import JsonObject

_OPTIONS: Final = {
    "PinCPU": "pinCPU",
    "PinMemory": "pinMemory",
    "ReservedPoolNamespaces": "reservedPoolNamespaces",
}
_OF_POOL: Final = {
    "Name": "name",
    "Namespaces": "namespaces",
    "CPUClass": "cpuClass",
}
_NO_EFFECT: Final = "unknown key, which CRI Resource Manager ignored as well"


def read_dynamic_pools(options: Section) -> JsonObject:
    """Read the options into a spec."""
    spec = options.copy(_OPTIONS)
    # Keys in lists have any letter case, and unknown ones had no effect.
    rows = options.sections("DynamicPoolTypes", any_case=True)
    return {**spec, "pools": [_pool(row) for row in rows]}


def _pool(row: Section) -> JsonObject:
    found = {**row.copy(_OF_POOL), **read_priority(row)}
    row.note_rest(_NO_EFFECT)
    return found
