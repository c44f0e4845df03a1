"""The configuration of the topology-aware policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from nri_resmgr.config.cpus import (
    ALWAYS_RESERVED,
    CpuChoice,
    read_cpus,
    read_reserved_namespaces,
)
from nri_resmgr.config.policy_config import (
    AGENT,
    MEMORY_KEYS,
    PLACE_PODS,
    PUBLISH,
    REBALANCE,
    SCHEDULING_KEYS,
    PolicyConfig,
    read_agent_use,
    read_control,
    read_exclusivity,
    read_memory_use,
    read_publish_use,
    read_rebalance_use,
    read_scheduling_use,
)
from nri_resmgr.config.table import Fields, Table, read_choice, read_fields, read_flag
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import SchedulingClass

_LEVELS: Final = ("system", "package", "die", "numa", "l3cache")
_FIELDS: Final[Fields] = {
    "availableResources": ("available", read_cpus),
    "reservedResources": ("reserved", read_cpus),
    "reserveWholeCores": ("reserve_whole_cores", read_flag),
    "reservedPoolNamespaces": ("reserved_pool_namespaces", read_reserved_namespaces),
    "pinCPU": ("pin_cpu", read_flag),
    "pinMemory": ("pin_memory", read_flag),
    "preferIsolatedCPUs": ("prefer_isolated_cpus", read_flag),
    "preferSharedCPUs": ("prefer_shared_cpus", read_flag),
    "colocatePods": ("colocate_pods", read_flag),
    "colocateNamespaces": ("colocate_namespaces", read_flag),
    "defaultCPUPriority": (
        "default_cpu_priority",
        read_choice("high", "normal", "low", "none"),
    ),
    "unlimitedBurstable": ("unlimited_burstable", read_choice(*_LEVELS)),
    "onFailure": ("on_failure", read_choice("refuse", "shared")),
    **PLACE_PODS,
    "publishResources": ("publish_resources", read_flag),
    "isolationAnnotations": ("isolation", read_flag),
    "exclusivity": ("exclusivity", read_exclusivity),
}
# Keys of nri-plugins' documents, most of which have no effect here.
_FOREIGN: Final = (AGENT, "control", "dra")
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
        reserved: CPUs for reserved namespaces; None for the lowest ordinary CPU.
        reserve_whole_cores: Whether all threads of their cores are reserved, too.
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
        scheduling_classes: By name.
        namespace_scheduling: Name of a class, by namespace.
        qos_scheduling: Name of a class, by QoS class.
        on_failure: ``refuse`` or ``shared``: what happens to a container that
            fits nowhere.
    """

    kind: ClassVar[str] = "TopologyAwarePolicy"

    reserved: CpuChoice | None = None
    reserve_whole_cores: bool = False
    reserved_pool_namespaces: tuple[str, ...] = (ALWAYS_RESERVED,)
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

    Source:
        nri-plugins, ``TopologyAwarePolicy``: its names, defaults and meanings.
    """
    spec = top.table(
        "spec",
        *_FIELDS,
        *SCHEDULING_KEYS,
        *_CPU_CLASSES,
        _INTERRUPTS,
        *MEMORY_KEYS,
        PUBLISH,
        REBALANCE,
        *_FOREIGN,
    )
    return TopologyAwareConfig(
        dra=spec.table("dra", "enabled", "sharedCounters").flag("enabled"),
        **read_fields(spec, _FIELDS, TopologyAwareConfig()),
        **read_scheduling_use(spec),
        **read_rebalance_use(spec),
        **read_agent_use(spec, "podResourceAPI"),
        **read_publish_use(spec),
        **_host(spec),
        ineffective=_ineffective(spec),
    )


def _host(spec: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # Late, here and below: on the start path, and few documents have these keys.
    if spec.rows.keys() & set(_CPU_CLASSES):
        # Late, as above.
        from nri_resmgr.config.cpu_classes import read_of_topology_aware

        found["cpu_classes"] = read_of_topology_aware(spec)
    if _INTERRUPTS in spec.rows:
        # Late, as above.
        from nri_resmgr.config.interrupts import read_controllable

        found["interrupts"] = read_controllable(spec)
    return found | read_control(spec, "cpu") | read_memory_use(spec)


def _ineffective(spec: Table) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if spec.rows.keys() & set(_FOREIGN):
        # Late, as above.
        from nri_resmgr.config.foreign import read_foreign

        found += tuple(
            path for path in read_foreign(spec) if path != "$.spec.dra.enabled"
        )
    if "cpuClasses" in spec.rows:
        # Late, as above.
        from nri_resmgr.config.cpu_classes import not_published

        found += tuple(not_published(spec))
    return found
