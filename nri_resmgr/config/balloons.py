"""The configuration of the balloons policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import msgspec

from nri_resmgr.config.balloon_types import (
    INEFFECTIVE,
    BalloonTypeConfig,
    ClassNames,
    ExpressionConfig,
    read_balloon_types,
    read_expressions,
    type_warnings,
)
from nri_resmgr.config.cpu_classes import (
    class_warnings,
    not_published,
    read_of_balloons,
)
from nri_resmgr.config.cpus import CpuChoice, read_cpus
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.foreign import read_services
from nri_resmgr.config.interrupts import read_controllable
from nri_resmgr.config.policy_config import (
    MEMORY_KEYS,
    PolicyConfig,
    ineffective_of_memory,
    read_control,
    read_memory_use,
)
from nri_resmgr.config.scheduling import read_scheduling_by, read_scheduling_classes
from nri_resmgr.config.table import Table
from nri_resmgr.values.scheduling import SchedulingClass

_SERVICES: Final = ("agent", "log", "instrumentation", "control", "dra")
_SHOW_CONTAINERS: Final = "showContainersInNrt"
_SCHEDULING: Final = ("schedulingClasses", "schedulingBy")
_CPU_CLASSES: Final = ("cpuClasses", "idleCPUClass", "turboDomain")
_INTERRUPTS: Final = "controllableInterrupts"
_KEYS: Final = (
    "availableResources",
    "reservedResources",
    "reservedExact",
    "reservedPerSocket",
    "reservedPoolNamespaces",
    "pinCPU",
    "pinMemory",
    "memoryBy",
    "allocatorTopologyBalancing",
    "preferSpreadOnPhysicalCores",
    "balloonTypes",
    "preserve",
    "loadClasses",
    "onFailure",
    "publishResources",
    "isolationAnnotations",
    *_SCHEDULING,
    *_CPU_CLASSES,
    _INTERRUPTS,
    _SHOW_CONTAINERS,
    *MEMORY_KEYS,
    *_SERVICES,
)
_LEVELS: Final = ("core", "l2cache")


class LoadClassConfig(msgspec.Struct, frozen=True):
    """A kind of load that should not run on CPUs which share a core or an L2 cache.

    Attributes:
        name: Unique in a document.
        level: ``core`` or ``l2cache``: what is shared.
        overloads: Whether this holds between CPUs of one balloon as well.
    """

    name: str
    level: str = "core"
    overloads: bool = False


class BalloonsConfig(PolicyConfig, frozen=True, kw_only=True):
    """A ``BalloonsPolicy`` document.

    Attributes:
        available: CPUs that may be used; None for all that are online.
        reserved: CPUs for reserved namespaces; None for any one.
        reserved_exact: Whether reserved containers never run elsewhere.
        reserved_per_socket: Whether every socket has a reserved balloon.
        reserved_pool_namespaces: Shell patterns of further reserved namespaces.
        pin_cpu: Whether to set CPU sets and shares of containers.
        pin_memory: Whether to set their memory nodes.
        memory_by: ``limit`` or ``request``: which amount of memory counts.
        topology_balancing: Whether balloons are spread over the machine.
        spread_on_cores: Whether one thread of each core is taken first.
        types: The balloon types that are listed.
        preserve: Containers that match any of these are not changed.
        load_classes: By name.
        scheduling_classes: By name.
        on_failure: ``refuse`` or ``shared``: what happens to a container that
            fits nowhere.
        publish_resources: Whether resources are published to containers.
    """

    kind: ClassVar[str] = "BalloonsPolicy"

    available: CpuChoice | None = None
    reserved: CpuChoice | None = None
    reserved_exact: bool = False
    reserved_per_socket: bool = False
    reserved_pool_namespaces: tuple[str, ...] = ()
    pin_cpu: bool = True
    pin_memory: bool = True
    memory_by: str = "limit"
    topology_balancing: bool = False
    spread_on_cores: bool = False
    types: tuple[BalloonTypeConfig, ...] = ()
    preserve: tuple[ExpressionConfig, ...] = ()
    load_classes: Mapping[str, LoadClassConfig] = {}
    scheduling_classes: Mapping[str, SchedulingClass] = {}
    on_failure: str = "refuse"
    publish_resources: bool = True

    @property
    def interrupt_claims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Path and patterns of the interrupts that balloon types claim."""
        return tuple(
            (f"{one.path}.irqClaim", one.interrupts.claim)
            for one in self.types
            if one.interrupts and one.interrupts.claim
        )

    @property
    def listed_types(self) -> tuple[str, ...]:
        """Names of the balloon types that are listed."""
        return tuple(one.name for one in self.types)


def read_balloons(top: Table) -> BalloonsConfig:
    """Read the ``spec`` of a document of this kind.

    Raises:
        BadSetting: The first error; its ``path`` is its place.

    Source:
        nri-plugins, ``BalloonsPolicy``: its names, defaults and meanings.
    """
    spec = top.table("spec", *_KEYS)
    loads, scheduling = _load_classes(spec), _scheduling(spec)
    preserve = spec.table("preserve", "matchExpressions")
    names = ClassNames(tuple(loads), tuple(scheduling.get("scheduling_classes", ())))
    types = read_balloon_types(spec, names)
    host, warnings = _host(spec)
    return BalloonsConfig(
        available=read_cpus(spec.table("availableResources", "cpu")),
        reserved=read_cpus(spec.table("reservedResources", "cpu")),
        reserved_exact=spec.flag("reservedExact", default=False),
        reserved_per_socket=spec.flag("reservedPerSocket", default=False),
        reserved_pool_namespaces=spec.texts("reservedPoolNamespaces", ()),
        pin_cpu=spec.flag("pinCPU", default=True),
        pin_memory=spec.flag("pinMemory", default=True),
        memory_by=spec.choice("memoryBy", ("limit", "request"), "limit"),
        topology_balancing=spec.flag("allocatorTopologyBalancing", default=False),
        spread_on_cores=spec.flag("preferSpreadOnPhysicalCores", default=False),
        types=types,
        preserve=read_expressions(preserve, "matchExpressions"),
        load_classes=loads,
        on_failure=spec.choice("onFailure", ("refuse", "shared"), "refuse"),
        publish_resources=spec.flag("publishResources", default=True),
        isolation=spec.flag("isolationAnnotations", default=False),
        ineffective=tuple(_ineffective(spec)),
        warnings=(*type_warnings(types), *warnings),
        **scheduling,
        **host,
        **read_control(spec, "cpu"),
        **read_memory_use(spec),
    )


def _load_classes(spec: Table) -> dict[str, LoadClassConfig]:
    found: dict[str, LoadClassConfig] = {}
    keys = ("name", "level", "overloadsLevelInBalloon")
    for row in spec.tables("loadClasses", *keys):
        name = row.name("name")
        if name in found:
            raise BadSetting(row.at("name"), f"duplicate name {name!r}")
        if "level" not in row.rows:
            path = row.at("level")
            raise BadSetting(path, f"missing, expected {' or '.join(_LEVELS)}")
        found[name] = LoadClassConfig(
            name,
            row.choice("level", _LEVELS, "core"),
            row.flag("overloadsLevelInBalloon", default=False),
        )
    return found


def _scheduling(spec: Table) -> dict[str, Any]:
    if not spec.rows.keys() & set(_SCHEDULING):
        return {}
    return {
        "scheduling_by": read_scheduling_by(spec),
        "scheduling_classes": read_scheduling_classes(spec),
    }


def _host(spec: Table) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Read settings of the host itself, and warnings about them."""
    found: dict[str, Any] = {}
    warnings: tuple[tuple[str, str], ...] = ()
    if _INTERRUPTS in spec.rows:
        found["interrupts"] = read_controllable(spec)
    # Types may name classes in a document that defines none: that is a warning.
    named = any("cpuClass" in row for row in spec.open_rows("balloonTypes"))
    if named or spec.rows.keys() & {*_CPU_CLASSES, "control"}:
        found["cpu_classes"] = classes = read_of_balloons(spec)
        warnings = () if classes else tuple(class_warnings(spec))
    return found, warnings


def _ineffective(spec: Table) -> Iterator[str]:
    if spec.rows.keys() & set(_SERVICES):
        yield from read_services(spec)
    if spec.flag(_SHOW_CONTAINERS, default=False):
        yield spec.at(_SHOW_CONTAINERS)
    if "cpuClasses" in spec.rows:
        yield from not_published(spec)
    yield from ineffective_of_memory(spec)
    for place, row in enumerate(spec.open_rows("balloonTypes")):
        for key in INEFFECTIVE:
            if row.get(key):
                yield f"{spec.at('balloonTypes')}[{place}].{key}"
