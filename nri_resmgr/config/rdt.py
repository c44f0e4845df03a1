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
from nri_resmgr.config.table import Fields, Table, read_fields, read_flag

_T = TypeVar("_T")

_RDT_KEYS: Final = ("options", "partitions")
_CACHES: Final = {"L2": "l2Allocation", "L3": "l3Allocation"}
_BANDWIDTH: Final = "mbAllocation"
_KEYS: Final = {**_CACHES, "MB": _BANDWIDTH}
_USE: Final[Fields] = {
    "usePodQoSAsDefaultClass": ("by_qos", read_flag),
    "force": ("forces", read_flag),
    "adoptGroups": ("adopts", read_flag),
    "monitorPods": ("monitors", read_flag),
}
_KINDS: Final = ("unified", "code", "data")
_MONITORING: Final = "monitoring"


def read_rdt_document(document: object) -> RdtConfig:
    """Read a file of goresctrl."""
    return read_rdt(Table.read(document, *_RDT_KEYS))


def read_rdt(table: Table) -> RdtConfig:
    """Read ``options`` and ``partitions`` of a mapping that may have other keys.

    A resource is optional unless its option says otherwise, as goresctrl's
    documentation has it.

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
    rows, names = table.open_table(key), table.rows.get(key)
    keys = (*_KEYS.values(), "classes" if key == "partitions" else "kubernetes")
    for name in names if isinstance(names, Mapping) else ():
        yield name, rows.table(name, *keys)


def _partition(name: str, row: Table) -> RdtPartition:
    classes = (_class(one, found) for one, found in _named(row, "classes"))
    return RdtPartition(name, _allocations(row), tuple(classes))


def _class(name: str, row: Table) -> RdtClass:
    deny = row.table("kubernetes", "denyPodAnnotation", "denyContainerAnnotation")
    return RdtClass(
        name,
        _allocations(row),
        deny.flag("denyPodAnnotation"),
        deny.flag("denyContainerAnnotation"),
    )


def _allocations(row: Table) -> Allocations:
    caches = {
        level: _by_ids(row.raw(key, str, dict), row.at(key), _cache)
        for level, key in _CACHES.items()
        if key in row.rows
    }
    if _BANDWIDTH not in row.rows:
        return Allocations(caches)
    path = row.at(_BANDWIDTH)
    entries = row.raw(_BANDWIDTH, list, dict)
    return Allocations(caches, _by_ids(entries, path, _bandwidth))


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


class MonitoredPods(msgspec.Struct, frozen=True):
    """The pods that have monitoring groups; without any filter all have.

    Attributes:
        namespaces: Shell patterns, of which one has to match.
        labels: Labels that a pod has to have, all of them with these values.
    """

    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class RdtUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of RDT classes.

    Attributes:
        config: Partitions and classes; None where the existing resctrl groups of the
            host are the classes.
        by_qos: Whether a container without a class gets the one with the name of its
            QoS class.
        forces: Whether a class is removed even if other processes run in it.
        adopts: Whether existing groups of other programs are changed if they have the
            name of a class.
        monitors: Whether there is a monitoring group for each pod.
        pods: The pods that have one.
        assigns: Whether containers get classes; else they are only monitored, in the
            groups where they are.
    """

    config: RdtConfig | None = None
    by_qos: bool = False
    forces: bool = False
    adopts: bool = False
    monitors: bool = False
    pods: MonitoredPods = MonitoredPods()
    assigns: bool = True


def read_rdt_use(control: Table) -> RdtUse | None:
    """Read ``rdt``: nri-plugins' keys, and ours about groups and monitoring.

    Returns:
        None where neither classes nor monitoring are on; it is validated all the same.
    """
    table = control.table("rdt", "enable", *_USE, _MONITORING, *_RDT_KEYS)
    config, fields = read_rdt(table), read_fields(table, _USE, RdtUse())
    pods = _monitored_pods(table.table(_MONITORING, "namespaces", "labelSelector"))
    if not table.flag("enable"):
        monitors = fields["monitors"]
        return RdtUse(monitors=True, pods=pods, assigns=False) if monitors else None
    # Without partitions no groups are created, as in nri-plugins.
    made = config if config.partitions else None
    return RdtUse(config=made, pods=pods, **fields)


def _monitored_pods(table: Table) -> MonitoredPods:
    """Read the filters of nri-plugins' resctrl-mon."""
    labels = table.open_table("labelSelector")
    return MonitoredPods(
        table.texts("namespaces"), {key: labels.text(key) for key in labels.rows}
    )
