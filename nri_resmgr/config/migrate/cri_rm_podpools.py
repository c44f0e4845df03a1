"""Converts the options of CRI Resource Manager's podpools policy."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.migrate.section import Section
from nri_resmgr.values.documents import JsonObject

_OPTIONS: Final = {"PinCPU": "pinCPU", "PinMemory": "pinMemory"}
_OF_POOL: Final = {
    "Name": "name",
    "CPU": "cpu",
    "MaxPods": "maxPods",
    "Instances": "instances",
    "FillOrder": "fillOrder",
}
_NO_EFFECT: Final = "unknown key, which CRI Resource Manager ignored as well"


def read_podpools(options: Section) -> JsonObject:
    """Read the options into a spec."""
    spec = options.copy(_OPTIONS)
    # Keys in lists have any letter case, and unknown ones had no effect.
    if rows := options.sections("Pools", any_case=True):
        spec["pools"] = [_pool(row) for row in rows]
    return spec


def _pool(row: Section) -> JsonObject:
    found = row.copy(_OF_POOL)
    row.note_rest(_NO_EFFECT)
    return found
