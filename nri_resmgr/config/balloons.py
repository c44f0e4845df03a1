"""The configuration of the balloons policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.config.balloon_types import (
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
from nri_resmgr.config.foreign import read_services
from nri_resmgr.config.interrupts import read_controllable
from nri_resmgr.config.node_topology import SHOW_CONTAINERS, unshown_containers
from nri_resmgr.config.policy_config import (
    AGENT,
    MEMORY_KEYS,
    PLACE_PODS,
    PUBLISH,
    PolicyConfig,
    read_agent_use,
    read_control,
    read_exclusivity,
    read_memory_use,
    read_publish_use,
)
from nri_resmgr.config.scheduling import (
    read_scheduling_by,
    read_scheduling_classes,
    scheduling_warnings,
)
from nri_resmgr.config.table import (
    Fields,
    Table,
    read_choice,
    read_fields,
    read_flag,
    read_texts,
)
from nri_resmgr.values import CpuSet
from nri_resmgr.values.scheduling import SchedulingClass

_TYPE_SIZES: Final = {
    "cpus": "cpus",
    "minCPUs": "min_cpus",
    "minBalloons": "min_balloons",
}
_SIZE_FLAGS: Final = {
    "$.spec.reservedExact": "reserved_exact",
    "$.spec.reservedPerSocket": "reserved_per_socket",
}

_NO_CPUS: Final = (
    "a balloon has the CPUs; count those of a CPU class, by publishExtendedResource"
)

_SERVICES: Final = (AGENT, "control", "dra")
_SCHEDULING: Final = ("schedulingClasses", "schedulingBy")
_CPU_CLASSES: Final = ("cpuClasses", "idleCPUClass", "turboDomain")
_INTERRUPTS: Final = "controllableInterrupts"
_FIELDS: Final[Fields] = {
    "availableResources": ("available", read_cpus),
    "reservedResources": ("reserved", read_cpus),
    "reserveWholeCores": ("reserve_whole_cores", read_flag),
    "reservedExact": ("reserved_exact", read_flag),
    "reservedPerSocket": ("reserved_per_socket", read_flag),
    "reservedPoolNamespaces": ("reserved_pool_namespaces", read_texts),
    "pinCPU": ("pin_cpu", read_flag),
    "pinMemory": ("pin_memory", read_flag),
    "memoryBy": ("memory_by", read_choice("limit", "request")),
    "allocatorTopologyBalancing": ("topology_balancing", read_flag),
    "preferSpreadOnPhysicalCores": ("spread_on_cores", read_flag),
    "onFailure": ("on_failure", read_choice("refuse", "shared")),
    **PLACE_PODS,
    "publishResources": ("publish_resources", read_flag),
    "isolationAnnotations": ("isolation", read_flag),
    "exclusivity": ("exclusivity", read_exclusivity),
}
_KEYS: Final = (
    *_FIELDS,
    "balloonTypes",
    "preserve",
    "loadClasses",
    *_SCHEDULING,
    *_CPU_CLASSES,
    _INTERRUPTS,
    SHOW_CONTAINERS,
    *MEMORY_KEYS,
    PUBLISH,
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
        reserved: CPUs for reserved namespaces; None for any one.
        reserve_whole_cores: Whether all threads of their cores are reserved, too.
        reserved_exact: Whether reserved containers never run elsewhere.
        reserved_per_socket: Whether every socket has a reserved balloon.
        reserved_pool_namespaces: Shell patterns of further reserved namespaces.
        pin_cpu: Whether to set CPU sets and shares of containers.
        pin_memory: Whether to set their memory nodes.
        memory_by: ``limit`` or ``request``: which amount of memory counts.
        topology_balancing: Whether balloons are spread over the machine.
        spread_on_cores: Whether one thread of each core is taken first.
        preserve: Containers that match any of these are not changed.
        load_classes: By name.
        scheduling_classes: By name.
        on_failure: ``refuse`` or ``shared``: what happens to a container that
            fits nowhere.
        place_pods: ``off``, ``soft`` or ``strict``: whether room is reserved for all
            containers of a pod when it is created.
    """

    kind: ClassVar[str] = "BalloonsPolicy"

    reserved: CpuChoice | None = None
    reserve_whole_cores: bool = False
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
    place_pods: str = "off"
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
    def preferred_devices(self) -> tuple[tuple[str, str], ...]:
        """Path and name of the devices that balloon types should be near or far."""
        return tuple(
            (f"{one.path}.{key}[{place}]", name)
            for one in self.types
            for key, names in (
                ("preferCloseToDevices", one.close_to),
                ("preferFarFromDevices", one.far_from),
            )
            for place, name in enumerate(names)
        )

    @property
    def named_cpus(self) -> tuple[tuple[str, CpuSet], ...]:
        """Paths of lists of CPUs, with the CPUs."""
        of_types = ((f"{one.path}.cpus", CpuSet.union(one.cpus)) for one in self.types)
        return (*super().named_cpus, *((path, one) for path, one in of_types if one))

    def without_cpus(self, gone: CpuSet) -> Self:
        """Leave CPUs out of all lists; a type without any other is like one of none."""
        types = tuple(
            replace(one, cpus=tuple(left for cpus in one.cpus if (left := cpus - gone)))
            for one in self.types
        )
        return replace(super().without_cpus(gone), types=types)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Paths of what a machine can be too small for, also in balloon types."""
        flags = (path for path, key in _SIZE_FLAGS.items() if getattr(self, key))
        of_types = (
            f"{one.path}.{key}"
            for one in self.types
            for key, name in _TYPE_SIZES.items()
            if getattr(one, name)
        )
        return (*super().sizes, *flags, *of_types)

    def without_sizes(self, paths: Collection[str]) -> Self:
        """Leave out some of the `sizes`."""
        plain = BalloonTypeConfig(path="", name="")
        types = []
        for one in self.types:
            gone = {
                name: getattr(plain, name)
                for key, name in _TYPE_SIZES.items()
                if f"{one.path}.{key}" in paths
            }
            types.append(replace(one, **gone) if gone else one)
        flags = {key: False for path, key in _SIZE_FLAGS.items() if path in paths}
        smaller = super().without_sizes(paths)
        return replace(smaller, types=tuple(types), **flags)

    def types_of_cpu_class(self, name: str) -> tuple[str, ...]:
        """Return the names of the balloon types with a CPU class."""
        return tuple(one.name for one in self.types if one.cpu_class == name)

    @property
    def listed_types(self) -> tuple[str, ...]:
        """Names of the balloon types that are listed."""
        return tuple(one.name for one in self.types)


def read_balloons(top: Table) -> BalloonsConfig:
    """Read the ``spec`` of a document of this kind.

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
        types=types,
        preserve=read_expressions(preserve, "matchExpressions"),
        load_classes=loads,
        ineffective=tuple(_ineffective(spec)),
        warnings=(*type_warnings(types), *warnings, *scheduling_warnings(spec)),
        **read_fields(spec, _FIELDS, BalloonsConfig()),
        **scheduling,
        **host,
        **read_control(spec, "cpu"),
        **read_memory_use(spec),
        **read_agent_use(spec, "podResourceAPI"),
        **read_publish_use(spec, no_cpus=_NO_CPUS),
    )


def _load_classes(spec: Table) -> dict[str, LoadClassConfig]:
    found: dict[str, LoadClassConfig] = {}
    for name, row in spec.named("loadClasses", "level", "overloadsLevelInBalloon"):
        row.require("level", " or ".join(_LEVELS))
        found[name] = LoadClassConfig(
            name,
            row.choice("level", _LEVELS, "core"),
            row.flag("overloadsLevelInBalloon"),
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
    named = any("cpuClass" in row.rows for row in spec.open_rows("balloonTypes"))
    if named or spec.rows.keys() & {*_CPU_CLASSES, "control"}:
        found["cpu_classes"] = classes = read_of_balloons(spec)
        warnings = () if classes else tuple(class_warnings(spec))
    return found, warnings


def _ineffective(spec: Table) -> Iterator[str]:
    if spec.rows.keys() & set(_SERVICES):
        yield from read_services(spec)
    if "cpuClasses" in spec.rows:
        yield from not_published(spec)
    yield from unshown_containers(spec)
