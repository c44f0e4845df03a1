"""Settings of the balloons policy."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import IrqRule
from nri_resmgr.policy.affinity import Expression
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.scheduling import SchedulingClass

RESERVED: Final = "reserved"
"""The type for containers of the system's namespaces."""

DEFAULT: Final = "default"
"""The type for containers that match no other one."""


class ShareLevel(enum.StrEnum):
    """The level within which a balloon's containers also use idle CPUs."""

    SYSTEM = "system"
    PACKAGE = "package"
    DIE = "die"
    NUMA = "numa"
    L2CACHE = "l2cache"
    CORE = "core"
    THREAD = "thread"


class MemoryBy(enum.StrEnum):
    """The amount of memory that is accounted for a container."""

    LIMIT = "limit"
    REQUEST = "request"


class LoadClass(msgspec.Struct, frozen=True):
    """A load that slows down other CPUs with which a resource is shared.

    Such as a core, or a level 2 cache. If it *overloads*, CPUs of the same balloon slow
    down each other as well.
    """

    level: ShareLevel
    overloads: bool = False


class BalloonType(msgspec.Struct, frozen=True, kw_only=True):
    """A template of balloons.

    Attributes:
        name: Unique among types.
        components: Types of the components of a composite balloon, which has only
            the CPUs of its components.
        balance_components: Whether a composite balloon has one component only, of
            the type with the fewest balloons.
        namespaces: Shell patterns of namespaces whose containers get this type.
        expressions: A container that matches any of them gets this type.
        group_by: Template such as ``${pod/labels/app}``; containers for which it
            expands to the same text prefer the same balloon.
        cpus: The CPUs of each balloon, if configured: these balloons always exist,
            there are no others, and their CPUs never change.
        homes: CPUs that the first, second, ... balloon takes before all others.
        max_cpus: Maximum number of CPUs of a balloon; None for no limit.
        min_balloons: Number of balloons that are kept even when empty.
        max_balloons: Maximum number of balloons; None for no limit.
        spread_pods: Whether containers of a pod may be in different balloons.
        per_namespace: Whether containers of a namespace prefer the same balloon.
        prefer_new: Whether a new balloon is preferred to one with room.
        share_idle: Level within which idle CPUs are used as well; None for none.
        near: CPUs to take first, in this order.
        devices: Shell patterns of devices that the kubelet assigned to a container;
            CPUs near them are taken next.
        far: CPUs to take last, the first of these very last.
        hide_hyperthreads: Whether containers see one thread of each core.
        spread: Whether new balloons go where most CPUs are free.
        one_thread: Whether one thread of each core is taken first.
        priority: Preferred class of CPUs; also the order of creation at the start.
        loads: Loads of its containers on resources that CPUs share.
        memory_kinds: Kinds of memory; empty for all but HBM.
        scheduling_class: Class of containers whose annotations name none.
        interrupts: Which interrupts its CPUs handle; None for no rule.
        rdt_class: Class of containers whose annotations name none.
    """

    name: str
    components: tuple[str, ...] = ()
    balance_components: bool = False
    namespaces: tuple[str, ...] = ()
    expressions: tuple[Expression, ...] = ()
    group_by: str = ""
    cpus: tuple[CpuSet, ...] = ()
    homes: tuple[CpuSet, ...] = ()
    min_cpus: int = 0
    max_cpus: int | None = None
    min_balloons: int = 0
    max_balloons: int | None = None
    spread_pods: bool = False
    per_namespace: bool = False
    prefer_new: bool = False
    share_idle: ShareLevel | None = None
    near: tuple[CpuSet, ...] = ()
    devices: tuple[str, ...] = ()
    far: tuple[CpuSet, ...] = ()
    hide_hyperthreads: bool = False
    spread: bool = False
    one_thread: bool = False
    priority: CpuPriority = CpuPriority.HIGH
    loads: tuple[LoadClass, ...] = ()
    memory_kinds: frozenset[MemoryKind] = frozenset()
    pin_memory: bool = True
    scheduling_class: str = ""
    cpu_class: str = ""
    interrupts: IrqRule | None = None
    rdt_class: str = ""
    blockio_class: str = ""


class BalloonsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: Online CPUs that the policy may use.
        types: In the order in which containers are matched, including `RESERVED`
            and `DEFAULT`. At least one may have CPUs.
        reserved: CPUs that are reserved by number: balloons of the type `RESERVED`
            get them before any other balloon is created.
        preserve: Containers that match any of these are not pinned.
        on_failure: Handling of a container for which no balloon has room.
        place_pods: Whether room is reserved for all containers of a new pod.
        cpu_classes: Names of all classes; empty if CPUs are not configured.
        idle_cpu_class: Class of CPUs in no balloon whose type names one.
        by_name: The types by name; derived from `types` even if given.
    """

    available: CpuSet
    types: tuple[BalloonType, ...]
    reserved: CpuSet = NO_CPUS
    pin_cpus: bool = True
    memory_by: MemoryBy = MemoryBy.LIMIT
    preserve: tuple[Expression, ...] = ()
    scheduling_classes: Mapping[str, SchedulingClass] = {}
    on_failure: OnFailure = OnFailure.REFUSE
    place_pods: PodPlacement = PodPlacement.OFF
    publish_resources: bool = True
    cpu_classes: tuple[str, ...] = ()
    idle_cpu_class: str = ""
    by_name: Mapping[str, BalloonType] = {}

    def __post_init__(self) -> None:
        # `adopt` relies on it: running containers have to be somewhere.
        if all(one.components or one.max_cpus == 0 for one in self.types):
            raise ValueError("no type may have a CPU")
        by_name = {one.name: one for one in self.types}
        msgspec.structs.force_setattr(self, "by_name", by_name)
