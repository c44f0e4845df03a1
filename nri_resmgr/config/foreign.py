"""Validates the settings of nri-plugins' documents that have no effect here."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.config.cpu_classes import read_old_cpu_classes
from nri_resmgr.config.table import Table


def read_foreign(spec: Table) -> tuple[str, ...]:
    """Validate the parts of a spec that have no effect here.

    Returns:
        The paths of what is set. What is off is not listed.

    Raises:
        BadSetting: A setting is not as nri-plugins documents it.
    """
    found = read_services(spec)
    # Only the balloons policy uses the CPU classes of old documents.
    old = spec.table("control", "cpu", "rdt", "blockio").table("cpu", "classes")
    return (*found, *_set_keys(old, "classes"))


def read_services(spec: Table) -> list[str]:
    """Validate settings of other services of nri-plugins; see `read_foreign`."""
    # CPU classes are effective or not, by policy: `read_foreign` lists them.
    spec.table("control", "cpu", "rdt", "blockio").table("cpu", "classes")
    read_old_cpu_classes(spec)
    dra = ("enabled", "sharedCounters")
    return [*_flags(spec.table("dra", *dra), *dra)]


def _set_keys(table: Table, *keys: str) -> Iterator[str]:
    return (table.at(key) for key in keys if table.rows.get(key))


def _flags(table: Table, *keys: str) -> Iterator[str]:
    for key in keys:
        table.flag(key)
    return _set_keys(table, *keys)
