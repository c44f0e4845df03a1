"""What is wrong with balloon types, alone and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.config.balloon_types import RESERVED, BalloonTypeConfig
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table

# What a type whose CPUs are those of its components has no say in.
NOT_OF_COMPOSITES: Final = (
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


def check_sizes(found: BalloonTypeConfig) -> None:
    """Complain about limits that contradict each other.

    Raises:
        BadSetting: The first that do.
    """
    for low, high, name in (
        (found.min_cpus, found.max_cpus, "CPUs"),
        (found.min_balloons, found.max_balloons, "Balloons"),
    ):
        if high and low > max(high, 0):
            path = f"{found.path}.min{name}"
            raise BadSetting(path, f"{low}, more than max{name} ({high})")
    if found.name == RESERVED:
        for key, count in (
            ("minBalloons", found.min_balloons),
            ("maxBalloons", found.max_balloons),
        ):
            if count > 1:
                path = f"{found.path}.{key}"
                raise BadSetting(path, f"{count}, of type {RESERVED} there is one")


def check_keys(row: Table, found: BalloonTypeConfig) -> None:
    """Complain about keys that do not go together.

    Raises:
        BadSetting: The first that does not.
    """
    if "componentCreation" in row.rows and not found.components:
        raise BadSetting(row.at("componentCreation"), "needs components")
    if found.components:
        _refuse(row, NOT_OF_COMPOSITES, "goes with no components")
    if found.cpus:
        _refuse(row, _NOT_WITH_CPUS, "goes with no cpus, which say it already")


def _refuse(row: Table, keys: Sequence[str], why: str) -> None:
    for key in keys:
        if key in row.rows:
            raise BadSetting(row.at(key), why)


def check_components(types: Mapping[str, BalloonTypeConfig]) -> None:
    """Complain about components that a balloon cannot be made of.

    Raises:
        BadSetting: The first.
    """
    known = (*types, RESERVED, "default")
    for one in types.values():
        for place, name in enumerate(one.components):
            path = f"{one.path}.components[{place}]"
            Table(path, {"balloonType": name}).choice("balloonType", known, "")
            if name in types and types[name].cpus:
                why = f"{name!r} has CPUs by number, and no balloons but these"
                raise BadSetting(f"{path}.balloonType", why)
            if _reaches(name, one.name, types):
                why = f"{name!r} has {one.name!r} for a component in turn"
                raise BadSetting(f"{path}.balloonType", why)


def type_warnings(types: Sequence[BalloonTypeConfig]) -> Iterator[tuple[str, str]]:
    """Find what types may say, and hardly mean; the path and the reason of each."""
    mixed = (
        "with preferIsolCpus containers run on isolated and on other CPUs, "
        "between which the kernel moves no process"
    )
    for one in types:
        if one.prefer_isolated and one.share_idle:
            yield f"{one.path}.shareIdleCPUsInSame", mixed


def _reaches(start: str, wanted: str, types: Mapping[str, BalloonTypeConfig]) -> bool:
    """Tell whether one type is made of another, if only in turn."""
    seen, ahead = set[str](), [start]
    while ahead:
        name = ahead.pop()
        if name == wanted:
            return True
        if name not in seen and name in types:
            seen.add(name)
            ahead += types[name].components
    return False
