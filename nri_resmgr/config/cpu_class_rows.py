"""Reading which CPUs the CPU classes of a document are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nri_resmgr.classes.cpu.cpu_class import TurboDomain
from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.config.cpu_classes import read_cpu_classes, read_old_cpu_classes
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table

OF_TOPOLOGY_AWARE: Final = (
    "cpuClasses",
    "sharedPoolCPUClass",
    "reservedPoolCPUClass",
    "defaultExclusiveCPUClass",
)

# CRI Resource Manager's name of the class of CPUs that nobody uses.
_DEFAULT: Final = "default"


def read_of_topology_aware(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``TopologyAwarePolicy``; None where there are none.

    Raises:
        BadSetting: The first mistake.

    Source:
        nri-plugins, ``policy/cpuclass.go``: the same rules.
    """
    classes = read_cpu_classes(spec)
    names = tuple(classes)
    shared, reserved, exclusive = (
        spec.choice(key, names, "") if spec.text(key, "") else ""
        for key in OF_TOPOLOGY_AWARE[1:]
    )
    if not classes:
        return None
    if not shared:
        path = spec.at("sharedPoolCPUClass")
        raise BadSetting(path, f"missing, expected {' or '.join(names)}")
    return CpuClassUse(
        classes=classes,
        paths=_paths(spec, classes),
        shared=shared,
        reserved=reserved,
        exclusive=exclusive,
    )


def read_of_balloons(spec: Table) -> CpuClassUse | None:
    """Read the classes of a ``BalloonsPolicy``; None where there are none.

    Raises:
        BadSetting: The first mistake.
    """
    domain = spec.choice("turboDomain", tuple(TurboDomain), TurboDomain.PACKAGE)
    old, new = read_old_cpu_classes(spec), read_cpu_classes(spec)
    classes = {**old, **new}
    names = tuple(classes)
    if not classes:
        return None
    for table, key in _named_by_balloons(spec):
        table.choice(key, names, "")
    idle = spec.text("idleCPUClass", _DEFAULT if _DEFAULT in names else "")
    paths = {name: f"{spec.at('control')}.cpu.classes.{name}" for name in old}
    return CpuClassUse(
        classes=classes,
        paths=paths | _paths(spec, new),
        domain=TurboDomain(domain),
        idle=idle,
    )


def _paths(spec: Table, classes: Iterable[str]) -> dict[str, str]:
    at = spec.at("cpuClasses")
    return {name: f"{at}[{place}]" for place, name in enumerate(classes)}


def class_warnings(spec: Table) -> Iterator[tuple[str, str]]:
    """Find classes that a ``BalloonsPolicy`` names and never defines any of.

    Its users name classes in types that they define elsewhere, or not at all.
    """
    for table, key in _named_by_balloons(spec):
        yield table.at(key), "no CPU class is defined, so CPUs are left as they are"


def _named_by_balloons(spec: Table) -> Iterator[tuple[Table, str]]:
    rows = [(spec, "idleCPUClass")]
    rows += [
        (Table(f"{spec.at('balloonTypes')}[{place}]", row), "cpuClass")
        for place, row in enumerate(spec.open_rows("balloonTypes"))
    ]
    return ((table, key) for table, key in rows if table.text(key, ""))


def not_published(spec: Table) -> Iterator[str]:
    """List what classes ask the cluster to be told, which nobody does."""
    for place, row in enumerate(spec.open_rows("cpuClasses")):
        for key in ("publishExtendedResource", "dra"):
            if row.get(key):
                yield f"{spec.at('cpuClasses')}[{place}].{key}"
