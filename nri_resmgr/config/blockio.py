"""Reads block I/O classes of policy documents, in the format of goresctrl's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.blockio import BlockIoConfig, IoLimits, ParameterSet
from nri_resmgr.classes.blockio.values import LEAST_WEIGHT, MOST_WEIGHT
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.values import BadQuantity, parse_bytes
from nri_resmgr.values.globs import BadGlob, check_glob

_DEVICES: Final = "Devices"
_WEIGHT: Final = "Weight"
_THROTTLES: Final = (
    "ThrottleReadBps",
    "ThrottleWriteBps",
    "ThrottleReadIOPS",
    "ThrottleWriteIOPS",
)


class BlockIoControl(msgspec.Struct, frozen=True):
    """The part of a policy's document that is about block I/O classes.

    Attributes:
        enabled: Whether containers get classes at all.
        by_qos: Whether a container without one gets the class with the name of its
            QoS class.
        classes: The classes that this plugin applies. None where the runtime knows
            the classes, and only their names are sent.
    """

    enabled: bool = False
    by_qos: bool = False
    classes: Mapping[str, tuple[ParameterSet, ...]] | None = None


def read_block_io_control(control: Table) -> BlockIoControl:
    """Read ``blockio`` of a document's ``control``: nri-plugins' flags and classes."""
    keys = ("enable", "usePodQoSAsDefaultClass", "classes")
    table = control.table("blockio", *keys)
    # Present but empty differs from absent: then no class is valid.
    classes = (
        read_block_io_classes(table, "classes") if "classes" in table.rows else None
    )
    return BlockIoControl(
        enabled=table.flag("enable"),
        by_qos=table.flag("usePodQoSAsDefaultClass"),
        classes=classes,
    )


def read_block_io_classes(owner: Table, key: str) -> BlockIoConfig:
    """Read the classes at *key* of a table.

    Letter case of parameters is free. Amounts are Kubernetes quantities, as text or as
    numbers; fractions are rounded up.

    Source:
        goresctrl, doc/blockio.md.
    """
    table = owner.open_table(key)
    names: object = owner.rows.get(key, {})
    found: dict[str, tuple[ParameterSet, ...]] = {}
    for name in names if isinstance(names, Mapping) else ():
        if not name:
            raise BadSetting(table.path, "a class needs a name")
        # A class without content is valid and sets nothing.
        rows = table.tables(name, _DEVICES, _WEIGHT, *_THROTTLES, any_case=True)
        found[name] = tuple(_parameter_set(row) for row in rows)
    return found


def _parameter_set(row: Table) -> ParameterSet:
    patterns = row.texts(_DEVICES)
    for place, pattern in enumerate(patterns):
        _check_pattern(pattern, f"{row.at(_DEVICES)}[{place}]")
    rates = [_quantity(row, key) for key in _THROTTLES]
    for key, rate in zip(_THROTTLES, rates, strict=True):
        # A weight can be for all devices; the kernel throttles single ones only.
        if rate is not None and not patterns:
            raise BadSetting(row.at(key), "needs Devices")
    return ParameterSet(patterns, IoLimits(_weight(row), *rates))


def _weight(row: Table) -> int | None:
    weight = _quantity(row, _WEIGHT)
    if weight is not None and not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        expected = f"expected {LEAST_WEIGHT} to {MOST_WEIGHT}, not {weight}"
        raise BadSetting(row.at(_WEIGHT), expected)
    return weight


def _quantity(row: Table, key: str) -> int | None:
    text = row.amount(key)
    if text is None:
        return None
    try:
        return parse_bytes(text)
    except BadQuantity as error:
        raise BadSetting(row.at(key), str(error)) from None


def _check_pattern(pattern: str, path: str) -> None:
    if not pattern.startswith("/"):
        raise BadSetting(path, f"expected an absolute path, not {pattern!r}")
    try:
        for name in pattern.split("/"):
            check_glob(name)
    except BadGlob as error:
        raise BadSetting(path, str(error)) from None
