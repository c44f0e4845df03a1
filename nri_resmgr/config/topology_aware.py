"""The configuration of the topology-aware policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from nri_resmgr.config.cpus import CpuChoice, read_cpus
from nri_resmgr.config.policy_config import (
    MEMORY_KEYS,
    PolicyConfig,
    ineffective_of_memory,
    read_control,
    read_memory_use,
)
from nri_resmgr.config.table import Table
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import SchedulingClass

# Always reserved: its containers belong to the node itself.
_ALWAYS_RESERVED: Final = "kube-system"

_PRIORITIES: Final = ("high", "normal", "low", "none")
_LEVELS: Final = ("system", "package", "die", "numa", "l3cache")

_SCHEDULING: Final = (
    "schedulingClasses",
    "namespaceSchedulingClasses",
    "podQoSSchedulingClasses",
    "schedulingBy",
)
# Keys of nri-plugins' documents, most of which have no effect here.
_FOREIGN: Final = (
    "agent",
    "log",
    "instrumentation",
    "control",
    "dra",
)
_CPU_CLASSES: Final = (
    "cpuClasses",
    "sharedPoolCPUClass",
    "reservedPoolCPUClass",
    "defaultExclusiveCPUClass",
)
_INTERRUPTS: Final = "controllableInterrupts"


class TopologyAwareConfig(PolicyConfig, frozen=True):
    """A ``TopologyAwarePolicy`` document; the defaults are safe on every machine.

    Attributes:
        available: CPUs that may be used; None for all that are online.
        reserved: CPUs for reserved namespaces; None for the lowest ordinary core.
        reserved_pool_namespaces: Shell patterns of the namespaces whose
            containers run on the reserved CPUs; kube-system is always one.
        pin_cpu: Whether to set CPU sets and shares of containers.
        pin_memory: Whether to set their memory nodes.
        prefer_isolated_cpus: Whether containers that request one to two CPUs get
            isolated ones.
        prefer_shared_cpus: Whether only containers that request them by annotation
            get exclusive CPUs.
        colocate_pods: Whether containers of a pod have affinity to each other.
        colocate_namespaces: Whether containers of a namespace do.
        default_cpu_priority: ``high``, ``normal``, ``low`` or ``none``.
        unlimited_burstable: ``system``, ``package``, ``die``, ``numa`` or
            ``l3cache``.
        scheduling_classes: By name.
        namespace_scheduling: Name of a class, by namespace.
        qos_scheduling: Name of a class, by QoS class.
        on_failure: ``refuse`` or ``shared``: what happens to a container that
            fits nowhere.
        place_pods: ``off``, ``soft`` or ``strict``.
        publish_resources: Whether resources are published to containers.
    """

    kind: ClassVar[str] = "TopologyAwarePolicy"

    available: CpuChoice | None = None
    reserved: CpuChoice | None = None
    reserved_pool_namespaces: tuple[str, ...] = (_ALWAYS_RESERVED,)
    pin_cpu: bool = True
    pin_memory: bool = True
    prefer_isolated_cpus: bool = True
    prefer_shared_cpus: bool = False
    colocate_pods: bool = False
    colocate_namespaces: bool = False
    default_cpu_priority: str = "none"
    unlimited_burstable: str = "package"
    scheduling_classes: Mapping[str, SchedulingClass] = {}
    namespace_scheduling: Mapping[str, str] = {}
    qos_scheduling: Mapping[QosClass, str] = {}
    on_failure: str = "refuse"
    place_pods: str = "off"
    publish_resources: bool = True


def read_topology_aware(top: Table) -> TopologyAwareConfig:
    """Read the ``spec`` of a document of this kind.

    Raises:
        BadSetting: The first error; its ``path`` is its place.

    Source:
        nri-plugins, ``TopologyAwarePolicy``: its names, defaults and meanings.
    """
    spec = top.table(
        "spec",
        "availableResources",
        "reservedResources",
        "reservedPoolNamespaces",
        "pinCPU",
        "pinMemory",
        "preferIsolatedCPUs",
        "preferSharedCPUs",
        "colocatePods",
        "colocateNamespaces",
        "defaultCPUPriority",
        "unlimitedBurstable",
        "onFailure",
        "placePods",
        "publishResources",
        "isolationAnnotations",
        *_SCHEDULING,
        *_CPU_CLASSES,
        _INTERRUPTS,
        *MEMORY_KEYS,
        *_FOREIGN,
    )
    return TopologyAwareConfig(
        **_placement(spec),
        **_scheduling(spec),
        **_host(spec),
        ineffective=_ineffective(spec),
    )


def _placement(spec: Table) -> dict[str, Any]:
    namespaces = spec.texts("reservedPoolNamespaces", ())
    return {
        "available": read_cpus(spec.table("availableResources", "cpu")),
        "reserved": read_cpus(spec.table("reservedResources", "cpu")),
        "reserved_pool_namespaces": tuple(
            dict.fromkeys((_ALWAYS_RESERVED, *namespaces))
        ),
        "pin_cpu": spec.flag("pinCPU", default=True),
        "pin_memory": spec.flag("pinMemory", default=True),
        "prefer_isolated_cpus": spec.flag("preferIsolatedCPUs", default=True),
        "prefer_shared_cpus": spec.flag("preferSharedCPUs", default=False),
        "colocate_pods": spec.flag("colocatePods", default=False),
        "colocate_namespaces": spec.flag("colocateNamespaces", default=False),
        "default_cpu_priority": spec.choice("defaultCPUPriority", _PRIORITIES, "none"),
        "unlimited_burstable": spec.choice("unlimitedBurstable", _LEVELS, "package"),
        "on_failure": spec.choice("onFailure", ("refuse", "shared"), "refuse"),
        "place_pods": spec.choice("placePods", ("off", "soft", "strict"), "off"),
        "publish_resources": spec.flag("publishResources", default=True),
        "isolation": spec.flag("isolationAnnotations", default=False),
    }


def _scheduling(spec: Table) -> dict[str, Any]:
    if not spec.rows.keys() & set(_SCHEDULING):
        return {}
    # Late, here and below: on the start path, and few documents have these keys.
    from nri_resmgr.config.scheduling import (
        read_namespace_classes,
        read_qos_classes,
        read_scheduling_by,
        read_scheduling_classes,
    )

    classes = read_scheduling_classes(spec)
    return {
        "scheduling_by": read_scheduling_by(spec),
        "scheduling_classes": classes,
        "namespace_scheduling": read_namespace_classes(spec, tuple(classes)),
        "qos_scheduling": read_qos_classes(spec, tuple(classes)),
    }


def _host(spec: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if spec.rows.keys() & set(_CPU_CLASSES):
        from nri_resmgr.config.cpu_classes import read_of_topology_aware

        found["cpu_classes"] = read_of_topology_aware(spec)
    if _INTERRUPTS in spec.rows:
        from nri_resmgr.config.interrupts import read_controllable

        found["interrupts"] = read_controllable(spec)
    return found | read_control(spec, "cpu") | read_memory_use(spec)


def _ineffective(spec: Table) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if spec.rows.keys() & set(_FOREIGN):
        from nri_resmgr.config.foreign import read_foreign

        found += read_foreign(spec)
    if "cpuClasses" in spec.rows:
        from nri_resmgr.config.cpu_classes import not_published

        found += tuple(not_published(spec))
    return found + ineffective_of_memory(spec)
