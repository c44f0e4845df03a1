"""What the balloons policy is told to do."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.irq.requests import IrqRule
from nri_resmgr.policy.affinity import Expression
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.scheduling import SchedulingClass
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_CPUS, CpuSet

RESERVED: Final = "reserved"
"""The type of the node's own containers."""

DEFAULT: Final = "default"
"""The type of containers that no other type claims."""


class ShareLevel(enum.StrEnum):
    """Within what a balloon's containers also use CPUs that are in no balloon."""

    SYSTEM = "system"
    PACKAGE = "package"
    DIE = "die"
    NUMA = "numa"
    L2CACHE = "l2cache"
    CORE = "core"
    THREAD = "thread"


class MemoryBy(enum.StrEnum):
    """Which amount of memory counts for a container."""

    LIMIT = "limit"
    REQUEST = "request"


class LoadClass(msgspec.Struct, frozen=True):
    """A load that CPUs suffer from which share something.

    Attributes:
        level: What they share: a core, or a level 2 cache.
        overloads: Whether CPUs of one balloon suffer from each other, too.
    """

    level: ShareLevel
    overloads: bool = False


class BalloonType(msgspec.Struct, frozen=True, kw_only=True):
    """A template of balloons.

    Attributes:
        name: Unlike all others.
        components: Types of which a composite balloon is made; it has no CPUs but
            theirs.
        balance_components: Whether a composite balloon has one component only, of
            the type with the fewest balloons.
        namespaces: Shell patterns of namespaces whose containers go here.
        expressions: Containers that any of them fits go here.
        group_by: Containers for which this text expands to the same prefer the
            same balloon; see `nri_resmgr.policy.balloons.groups`.
        cpus: The CPUs of each balloon, where they are given; then there are just
            these balloons, and they never change.
        homes: CPUs that the first, second, ... balloon takes before all others.
        min_cpus: What a balloon always has.
        max_cpus: What it never exceeds; None for no limit.
        min_balloons: How many are kept when empty.
        max_balloons: How many there can be; None for no limit.
        spread_pods: Whether containers of a pod need not go together.
        per_namespace: Whether containers of a namespace prefer to go together.
        prefer_new: Whether a new balloon is better than one with room.
        share_idle: Within what CPUs of no balloon are used besides.
        near: CPUs to take first, in this order.
        devices: Shell patterns of devices that the kubelet gave to a container;
            CPUs near them are taken next.
        far: CPUs to take last, the first of these very last.
        hide_hyperthreads: Whether containers see one thread of each core.
        spread: Whether new balloons go where most CPUs are free.
        one_thread: Whether one thread of each core is taken first.
        priority: The class of CPUs, and who comes first when balloons are made.
        loads: What its containers do to CPUs that share something with theirs.
        memory_kinds: Kinds of memory; none for all but HBM.
        pin_memory: Whether containers are told memory nodes.
        scheduling_class: Of containers that name none.
        cpu_class: Of its CPUs.
        interrupts: Which interrupts its CPUs take; None where it says nothing.
        rdt_class: Of containers whose annotations name none.
        blockio_class: Likewise.
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
    """Settings that fit the machine they were made for.

    Attributes:
        available: Online CPUs that the policy may use.
        types: In the order in which containers are matched; `RESERVED` and
            `DEFAULT` are among them. One at least may have CPUs.
        reserved: CPUs that are reserved by number, which balloons of the type
            `RESERVED` have before anybody else is placed.
        pin_cpus: Whether CPU sets and shares are told to the runtime.
        memory_by: Which amount of memory counts for a container.
        preserve: Containers that any of these fits are left alone.
        scheduling_classes: By name.
        on_failure: What becomes of a container that fits nowhere.
        publish_resources: Whether containers are told what they have.
        cpu_classes: The names of all; none where CPUs are left as they are.
        idle_cpu_class: Of CPUs that belong to no balloon with a class of its own.
        by_name: The types by name; always derived, whatever is given.
    """

    available: CpuSet
    types: tuple[BalloonType, ...]
    reserved: CpuSet = NO_CPUS
    pin_cpus: bool = True
    memory_by: MemoryBy = MemoryBy.LIMIT
    preserve: tuple[Expression, ...] = ()
    scheduling_classes: Mapping[str, SchedulingClass] = {}
    on_failure: OnFailure = OnFailure.REFUSE
    publish_resources: bool = True
    cpu_classes: tuple[str, ...] = ()
    idle_cpu_class: str = ""
    by_name: Mapping[str, BalloonType] = {}

    def __post_init__(self) -> None:
        if all(one.components or one.max_cpus == 0 for one in self.types):
            raise ValueError("no type may have a CPU")
        by_name = {one.name: one for one in self.types}
        msgspec.structs.force_setattr(self, "by_name", by_name)
