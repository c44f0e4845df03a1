"""Checks of partitions and classes that hold on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.classes.rdt.errors import BadClass
from nri_resmgr.classes.rdt.settings import (
    LEVELS,
    ROOT_CLASS,
    RdtClass,
    RdtConfig,
    RdtPartition,
)

# PATH_MAX.
_NAME_LIMIT: Final = 4096
# Files and folders in the root of a resctrl file system.
_RESERVED: Final = frozenset(
    (
        *(".", "..", "info", "mon_data", "mon_groups"),
        *("cpus", "cpus_list", "mode", "schemata", "size", "tasks"),
        *("ctrl_hw_id", "mon_hw_id", "mba_MBps_event", "mbm_L3_assignments"),
    )
)


def group_of(one: RdtClass) -> str:
    """Return the name of a class; the same for both names of the root group.

    >>> group_of(RdtClass(""))
    'system/default'
    """
    return one.name or ROOT_CLASS


def check_config(config: RdtConfig) -> None:
    """Check names, and that classes ask only for resources of their partition.

    Raises:
        BadClass: The first mistake.
    """
    _check_partitions(config.partitions)
    owners: dict[str, str] = {}
    for partition, one in classes_of(config):
        name = group_of(one)
        _check_name(partition, name)
        if name in owners:
            why = f"partition {owners[name]!r} has a class of that name"
            raise BadClass(partition.name, name, "", why)
        owners[name] = partition.name
        for resource in one.allocations.resources:
            if resource not in partition.allocations.resources:
                why = "the partition allocates none, so the class can have no part"
                raise BadClass(partition.name, name, resource, why)


def classes_of(config: RdtConfig) -> Iterator[tuple[RdtPartition, RdtClass]]:
    """Yield all classes, each with its partition."""
    for partition in config.partitions:
        for one in partition.classes:
            yield partition, one


def _check_partitions(partitions: tuple[RdtPartition, ...]) -> None:
    names = [one.name for one in partitions]
    for name in names:
        if names.count(name) > 1:
            raise BadClass(name, "", "", "there is another partition of that name")
    for level in LEVELS:
        asking = [one.name for one in partitions if level in one.allocations.caches]
        for one in partitions:
            if asking and one.name not in asking:
                why = f"allocates none, and partition {asking[0]!r} does"
                raise BadClass(one.name, "", level, why)


def _check_name(partition: RdtPartition, name: str) -> None:
    if name == ROOT_CLASS:
        return
    if name in _RESERVED or "/" in name or "\n" in name or "\0" in name:
        why = "cannot be the name of a group of resctrl"
        raise BadClass(partition.name, name, "", why)
    if len(name) >= _NAME_LIMIT:
        why = f"the name has to be under {_NAME_LIMIT} characters"
        raise BadClass(partition.name, f"{name[:20]}…", "", why)
