"""The options that documents of all kinds of policies have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.config.cpus import (
    AVAILABLE,
    RESERVED,
    CpuChoice,
    listed_cpus,
    without_cpus,
)
from nri_resmgr.config.table import Fields, Table, read_choice
from nri_resmgr.values import CpuSet

if TYPE_CHECKING:  # few documents have these
    from nri_resmgr.classes.memory.qos import MemoryQosConfig
    from nri_resmgr.config.blockio import BlockIoControl
    from nri_resmgr.config.cpu_classes import CpuClassUse
    from nri_resmgr.config.memory_classes import NumaPolicyConfig
    from nri_resmgr.config.observability import InstrumentationUse, LogUse
    from nri_resmgr.config.rdt import RdtUse

API_VERSION: Final = "config.nri/v1alpha1"
"""Of documents of all kinds."""

CONTROL: Final = "control"

_RESERVED: Final = "reserved"  # the field of those that reserve CPUs

AGENT: Final = "agent"
"""Of documents of all kinds; `read_agent_use` reads it."""

REBALANCE: Final = "rebalance"
"""Of documents of kinds that rebalance; `read_rebalance_use` reads it."""

_QOS: Final = "memoryQos"
_POLICY: Final = "memoryPolicy"
_MISC: Final = "miscLimits"

MEMORY_KEYS: Final = (_QOS, _POLICY, _MISC)
"""Of documents of all kinds; `read_memory_use` reads them."""


PUBLISH: Final = "publish"
"""Of documents of all kinds; `read_publish_use` reads it."""

PLACE_PODS: Final[Fields] = {
    "placePods": ("place_pods", read_choice("off", "soft", "strict"))
}
"""Fields of documents of kinds that place pods as a whole."""

MOST_MOVED: Final = 10_000
"""The largest number of containers that may move at a time: more than a node has."""


class RebalanceUse(msgspec.Struct, frozen=True):
    """The conditions under which containers move to better places.

    Attributes:
        interval: Seconds from one time to the next; 0 for only at request.
        at_most: The most containers that move at a time.
    """

    interval: float = 0.0
    # More would lose the contents of their caches at once.
    at_most: int = 5


class NodeTopologyUse(msgspec.Struct, frozen=True):
    """What of the node the agent publishes to schedulers.

    Attributes:
        pools: Whether pools or balloons are published beside NUMA nodes.
        containers: Whether containers are published in their balloons.
        container_types: Types of balloons whose containers are, whatever *containers*.
        fingerprint: Whether the fingerprint of the node's pods is published.
        force: Whether an object of another manager is taken over.
    """

    pools: bool = False
    containers: bool = False
    container_types: tuple[str, ...] = ()
    fingerprint: bool = False
    force: bool = False


class PublishUse(msgspec.Struct, frozen=True):
    """What of the node the cluster gets to know, and by which way.

    Attributes:
        by: The way of extended resources: ``device-plugin`` or ``node-status``.
        exclusive_cpus: Whether exclusive CPUs, or lists of them, are such a resource.
        rdt_classes: Number of containers of each RDT class that is one.
        node_features: Whether a file for Node Feature Discovery is written.
    """

    by: str = "device-plugin"
    exclusive_cpus: bool = False
    rdt_classes: Mapping[str, int] = {}
    node_features: bool = False


class PolicyConfig(msgspec.Struct, frozen=True):
    """The spec of a document of any kind.

    Attributes:
        kind: As in the document.
        ineffective: Paths of valid settings that have no effect.
        warnings: Paths of settings with an unexpected effect, each with the reason.
        available: CPUs that may be used; None for all that are online.
        allow_loss: Whether it may take exclusive CPUs from running containers.
        dra: Whether claims of CPUs are prepared.
        dry_run: Whether it is to be tried, and only reported.
        interrupts: Patterns of those that may be moved.
        cpu_classes: CPU classes; None where CPU settings are not changed.
        rdt: RDT classes; None where they are off.
        blockio: Block I/O classes; None where they are off.
        memory_qos: Memory classes; None where their annotations are not read.
        memory_policy: Memory policies; None likewise.
        scheduling_by: What sets scheduling classes: ``runtime``, ``host`` or ``auto``,
            which is the host where the runtime does not support them.
        misc_limits: Whether annotations that limit misc resources are read.
        isolation: Whether CRI-O's isolation annotations are read.
        exclusivity: What keeps other processes off exclusive CPUs: their own cpusets,
            or the kernel, by partitions.
        rebalance: When containers move to better places.
        node_topology: What the agent publishes to schedulers; None for nothing.
        pod_resources: Whether the kubelet is asked for the devices of all containers.
        log: Levels and form of the log; None where flags alone decide.
        instrumentation: Metrics, health and traces; None likewise.
        publish: What the cluster gets to know of the node.
    """

    kind: ClassVar[str] = ""

    ineffective: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    available: CpuChoice | None = None
    allow_loss: bool = False
    dra: bool = False
    dry_run: bool = False
    interrupts: tuple[str, ...] = ("*",)
    cpu_classes: CpuClassUse | None = None
    rdt: RdtUse | None = None
    blockio: BlockIoControl | None = None
    memory_qos: MemoryQosConfig | None = None
    memory_policy: NumaPolicyConfig | None = None
    misc_limits: bool = True
    scheduling_by: str = "auto"
    isolation: bool = False
    exclusivity: Exclusivity = Exclusivity.CPUSET
    rebalance: RebalanceUse = RebalanceUse()
    node_topology: NodeTopologyUse | None = None
    pod_resources: bool = True
    log: LogUse | None = None
    instrumentation: InstrumentationUse | None = None
    publish: PublishUse = PublishUse()

    @property
    def interrupt_claims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Path and patterns of the interrupts that parts of the document claim."""
        return ()

    @property
    def preferred_devices(self) -> tuple[tuple[str, str], ...]:
        """Path and name of the devices that CPUs should be near or far."""
        return ()

    @property
    def published_classes(self) -> tuple[str, ...]:
        """Return the names of the CPU classes that are extended resources."""
        classes = self.cpu_classes.classes if self.cpu_classes else {}
        return tuple(name for name, one in classes.items() if one.is_published)

    @property
    def publishes(self) -> bool:
        """Whether the cluster gets to know anything of the node."""
        return self.publish != PublishUse() or bool(self.published_classes)

    @property
    def named_cpus(self) -> tuple[tuple[str, CpuSet], ...]:
        """Paths of lists of CPUs, with the CPUs."""
        # Policies of other packages may have reserved CPUs, too.
        rows = ((AVAILABLE, self.available), (RESERVED, getattr(self, _RESERVED, None)))
        return tuple((path, cpus) for path, one in rows if (cpus := listed_cpus(one)))

    def without_cpus(self, gone: CpuSet) -> Self:
        """Leave CPUs out of all lists; where no other is left, the default counts."""
        fields = ("available", _RESERVED)
        choices = {key: getattr(self, key) for key in fields if hasattr(self, key)}
        left = {key: without_cpus(one, gone) for key, one in choices.items()}
        return self if left == choices else replace(self, **left)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Paths of what a machine can be too small for, each left out by itself."""
        rows = ((AVAILABLE, self.available), (RESERVED, getattr(self, _RESERVED, None)))
        return tuple(path for path, one in rows if one is not None)

    def without_sizes(self, paths: Collection[str]) -> Self:
        """Leave out some of the `sizes`."""
        fields = {AVAILABLE: "available", RESERVED: _RESERVED}
        gone = {key: None for path, key in fields.items() if path in paths}
        return replace(self, **gone) if gone else self

    def types_of_cpu_class(self, name: str) -> tuple[str, ...]:  # noqa: ARG002 - for those that override
        """Return the names of the types of pools with a CPU class."""
        return ()

    @property
    def listed_types(self) -> tuple[str, ...]:
        """Names of the types of pools that the document lists."""
        return ()


SCHEDULING_KEYS: Final = (
    "schedulingClasses",
    "namespaceSchedulingClasses",
    "podQoSSchedulingClasses",
    "schedulingBy",
)
"""Of documents that set scheduling classes by namespace and QoS class."""


def read_exclusivity(table: Table, key: str, default: Exclusivity) -> Exclusivity:
    """Read the field of this name."""
    return Exclusivity(table.choice(key, tuple(Exclusivity), default))


def read_control(spec: Table, *others: str) -> dict[str, Any]:
    """Read ``control`` into fields of `PolicyConfig`.

    Args:
        spec: Of a document of any kind.
        others: Keys that are read elsewhere.
    """
    found: dict[str, Any] = {}
    control = spec.table(CONTROL, "rdt", "blockio", *others)
    # Late, here and below: on the start path, and few documents have any of these.
    if "rdt" in control.rows:
        # Late, as above.
        from nri_resmgr.config.rdt import read_rdt_use

        found["rdt"] = read_rdt_use(control)
    if "blockio" in control.rows:
        # Late, as above.
        from nri_resmgr.config.blockio import read_block_io_control

        use = read_block_io_control(control)
        found["blockio"] = use if use.enabled else None
    return found


def read_agent_use(spec: Table, *others: str) -> dict[str, Any]:
    """Read `AGENT` into fields of `PolicyConfig`.

    Args:
        spec: Of a document of any kind.
        others: Keys that are read elsewhere.
    """
    if AGENT not in spec.rows:
        return {}
    # Late, as above.
    from nri_resmgr.config.node_topology import read_agent

    return read_agent(spec, *others)


def read_rebalance_use(spec: Table) -> dict[str, Any]:
    """Read `REBALANCE` into a field of `PolicyConfig`."""
    if REBALANCE not in spec.rows:
        return {}
    # Late, as above.
    from nri_resmgr.config.rebalancing import read_rebalance

    return {"rebalance": read_rebalance(spec)}


def read_publish_use(spec: Table, *, no_cpus: str = "") -> dict[str, Any]:
    """Read `PUBLISH` into a field of `PolicyConfig`.

    Args:
        spec: Of a document of any kind.
        no_cpus: Why containers of this kind have no exclusive CPUs that are counted.
    """
    if PUBLISH not in spec.rows:
        return {}
    # Late, as above.
    from nri_resmgr.config.publishing import read_publish

    return {"publish": read_publish(spec, no_cpus)}


def read_scheduling_use(spec: Table) -> dict[str, Any]:
    """Read `SCHEDULING_KEYS` into fields of `PolicyConfig` and those that have them."""
    if not spec.rows.keys() & set(SCHEDULING_KEYS):
        return {}
    # Late, as above.
    from nri_resmgr.config.scheduling import (
        read_namespace_classes,
        read_qos_classes,
        read_scheduling_by,
        read_scheduling_classes,
        scheduling_warnings,
    )

    classes = read_scheduling_classes(spec)
    return {
        "scheduling_by": read_scheduling_by(spec),
        "scheduling_classes": classes,
        "warnings": tuple(scheduling_warnings(spec)),
        "namespace_scheduling": read_namespace_classes(spec, tuple(classes)),
        "qos_scheduling": read_qos_classes(spec, tuple(classes)),
    }


def read_memory_use(spec: Table) -> dict[str, Any]:
    """Read `MEMORY_KEYS` into fields of `PolicyConfig`."""
    found: dict[str, Any] = {"misc_limits": spec.flag(_MISC, default=True)}
    if not spec.rows.keys() & {_QOS, _POLICY}:
        return found
    # Late, as above.
    from nri_resmgr.config.memory_classes import read_memory_qos, read_numa_policies

    if _QOS in spec.rows:
        found["memory_qos"] = read_memory_qos(spec, _QOS)
    if _POLICY in spec.rows:
        found["memory_policy"] = read_numa_policies(spec, _POLICY)
    return found


ReadDocument: TypeAlias = Callable[[object], PolicyConfig]
"""Reads a parsed document, None for the built-in default; raises `BadSetting`.

`nri_resmgr.policies.read_config` is one. It is passed in where a document is read
here, because kinds of policies are in a layer above this one.
"""
