"""Reads RDT partitions and classes in goresctrl's files and in ``control.rdt``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.classes.rdt.checks import check_config
from nri_resmgr.classes.rdt.errors import BadClass, BadShare
from nri_resmgr.classes.rdt.settings import (
    ALL,
    Allocations,
    BandwidthAllocation,
    CacheAllocation,
    CacheShare,
    RdtClass,
    RdtConfig,
    RdtPartition,
)
from nri_resmgr.classes.rdt.text import (
    parse_bandwidth,
    parse_cache_ids,
    parse_cache_share,
)
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table

_T = TypeVar("_T")

_RDT_KEYS: Final = ("options", "partitions")
_CACHES: Final = {"L2": "l2Allocation", "L3": "l3Allocation"}
_BANDWIDTH: Final = "mbAllocation"
_KEYS: Final = {**_CACHES, "MB": _BANDWIDTH}
_KINDS: Final = ("unified", "code", "data")


def read_rdt_document(document: object) -> RdtConfig:
    """Read a file of goresctrl.

    Raises:
        BadSetting: The first error.
    """
    return read_rdt(Table.read(document, *_RDT_KEYS))


def read_rdt(table: Table) -> RdtConfig:
    """Read ``options`` and ``partitions`` of a mapping that may have other keys.

    A resource is optional unless its option says otherwise, as goresctrl's
    documentation has it.

    Raises:
        BadSetting: The first error.

    Source:
        goresctrl, ``doc/rdt.md``; nri-plugins, ``control.rdt``.
    """
    options = table.table("options", "l2", "l3", "mb")
    required = (
        name
        for name in _KEYS
        if not options.table(name.lower(), "optional").flag("optional", default=True)
    )
    partitions = tuple(_partition(name, row) for name, row in _named(table))
    config = RdtConfig(partitions, frozenset(required))
    try:
        check_config(config)
    except BadClass as error:
        raise BadSetting(_path_of(table, error), error.why) from None
    return config


def _path_of(table: Table, error: BadClass) -> str:
    path = f"{table.at('partitions')}.{error.partition}"
    if error.class_name:
        path += f".classes.{error.class_name}"
    return f"{path}.{_KEYS[error.resource]}" if error.resource else path


def _named(table: Table, key: str = "partitions") -> Iterator[tuple[str, Table]]:
    """Iterate over a mapping's named rows, including those that are null."""
    table.open_table(key)
    rows = table.rows.get(key)
    keys = (*_KEYS.values(), "classes" if key == "partitions" else "kubernetes")
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        shown = name or '""'
        yield name, Table.read(row, *keys, path=f"{table.at(key)}.{shown}")


def _partition(name: str, row: Table) -> RdtPartition:
    classes = (_class(one, found) for one, found in _named(row, "classes"))
    return RdtPartition(name, _allocations(row), tuple(classes))


def _class(name: str, row: Table) -> RdtClass:
    deny = row.table("kubernetes", "denyPodAnnotation", "denyContainerAnnotation")
    return RdtClass(
        name,
        _allocations(row),
        deny.flag("denyPodAnnotation", default=False),
        deny.flag("denyContainerAnnotation", default=False),
    )


def _allocations(row: Table) -> Allocations:
    caches = {
        level: _by_ids(row.rows[key], row.at(key), _cache)
        for level, key in _CACHES.items()
        if key in row.rows
    }
    if _BANDWIDTH not in row.rows:
        return Allocations(caches)
    path = row.at(_BANDWIDTH)
    return Allocations(caches, _by_ids(row.rows[_BANDWIDTH], path, _bandwidth))


def _by_ids(
    found: object, path: str, read: Callable[[object, str], _T]
) -> Mapping[int, _T]:
    """Read a mapping of cache ids to values, or one value, which is for all caches."""
    if not isinstance(found, Mapping):
        return {ALL: read(found, path)}
    read_so_far: dict[int, _T] = {}
    for key, content in found.items():
        here = f"{path}.{key}"
        try:
            # YAML parses a single id as a number.
            ids = parse_cache_ids(str(key))
        except BadShare as error:
            raise BadSetting(
                here, f"expected all or a list of cache ids: {error.why}"
            ) from None
        value = read(content, here)
        for one in ids:
            if one in read_so_far:
                raise BadSetting(here, f"duplicate cache id {one}")
            read_so_far[one] = value
    return read_so_far


def _cache(found: object, path: str) -> CacheAllocation:
    if not isinstance(found, Mapping):
        return CacheAllocation(_share(found, path))
    row = Table.read(found, *_KINDS, path=path)
    shares = {kind: _share(row.rows[kind], row.at(kind)) for kind in row.rows}
    if "unified" not in shares:
        raise BadSetting(row.at("unified"), "missing, expected a share such as 60%")
    for given, other in (("code", "data"), ("data", "code")):
        if given in shares and other not in shares:
            raise BadSetting(row.at(other), f"missing, {given} needs it")
    return CacheAllocation(shares["unified"], shares.get("code"), shares.get("data"))


def _share(found: object, path: str) -> CacheShare:
    if not isinstance(found, str):
        why = f"expected text such as '60%', '0-5' or '0xff0', not {_kind(found)}"
        raise BadSetting(path, why)
    try:
        return parse_cache_share(found)
    except BadShare as error:
        raise BadSetting(path, str(error)) from None


def _bandwidth(found: object, path: str) -> BandwidthAllocation:
    if not isinstance(found, list):
        why = f"expected a list such as ['50%', '1000MBps'], not {_kind(found)}"
        raise BadSetting(path, why)
    try:
        return parse_bandwidth(found)
    except BadShare as error:
        raise BadSetting(path, str(error)) from None


def _kind(found: object) -> str:
    if found is None:
        return "nothing"
    return "a mapping" if isinstance(found, Mapping) else repr(found)


class RdtUse(msgspec.Struct, frozen=True, kw_only=True):
    """How RDT classes are used.

    Attributes:
        config: Partitions and classes; None where the existing resctrl groups of the
            host are the classes.
        by_qos: Whether a container without a class gets the one with the name of its
            QoS class.
        forces: Whether a class is removed even if other processes run in it.
        adopts: Whether existing groups of other programs are changed if they have the
            name of a class.
        monitors: Whether there is a monitoring group for each pod.
    """

    config: RdtConfig | None = None
    by_qos: bool = False
    forces: bool = False
    adopts: bool = False
    monitors: bool = False


def read_rdt_use(control: Table) -> RdtUse | None:
    """Read ``rdt``: nri-plugins' keys, and ``adoptGroups`` and ``monitorPods``.

    Returns:
        None where it is not enabled; it is validated all the same.

    Raises:
        BadSetting: The first error.
    """
    keys = ("enable", "usePodQoSAsDefaultClass", "force", "adoptGroups", "monitorPods")
    table = control.table("rdt", *keys, *_RDT_KEYS)
    config = read_rdt(table)
    enable, by_qos, forces, adopts, monitors = (
        table.flag(key, default=False) for key in keys
    )
    if not enable:
        return None
    return RdtUse(
        # Without partitions no groups are created, as in nri-plugins.
        config=config if config.partitions else None,
        by_qos=by_qos,
        forces=forces,
        adopts=adopts,
        monitors=monitors,
    )
