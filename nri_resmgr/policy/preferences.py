"""Preferences of containers from annotations."""

from __future__ import annotations

import enum
from typing import Final

from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.classes.irq.requests import IrqRequest
from nri_resmgr.classes.isolation.requests import IsolationRequest
from nri_resmgr.policy.affinity import Affinity
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, StoredValue


class TreeLevel(enum.StrEnum):
    """Levels of a tree of pools, from coarse to fine, as configurations name them."""

    SYSTEM = "system"
    PACKAGE = "package"
    DIE = "die"
    NUMA = "numa"
    L3 = "l3cache"


class Preferences(StoredValue, frozen=True, kw_only=True):
    """A container's effective annotations; None where they say nothing.

    Attributes:
        require_isolated: Whether to refuse it rather than grant other exclusive CPUs.
        cpu_priority: Preferred priority of exclusive CPUs.
        hide_hyperthreads: Whether to pin to one thread of each core only.
        pick_by_hints: Whether exclusive CPUs are spread evenly over hints of pod
            resources, and memory is bound to the nodes of these.
        memory_kinds: Kinds of memory; none for the default.
        cold_start: Seconds after the start until it gets DRAM; 0 for no cold start.
        unlimited_burstable: Level of its pool if it is Burstable without a CPU limit.
        strict_hints: Whether it must be inside of every hint.
        preserve_cpus: Whether its CPUs are left unchanged.
        preserve_memory: Whether its memory nodes are left unchanged.
        scheduling_class: Name of a class; empty for none.
        balloon: Name of a balloon type; empty for none.
        pod_pool: Name of a pool for whole pods; empty for none.
        dynamic_pool: Name of a pool that is resized by use; empty for none.
        rdt_class: Class of cache and memory bandwidth. Not for policies.
        blockio_class: Class of block I/O. Not for policies.
        top_tier_limit: Soft limit of fast memory. Not for policies.
        isolation: CRI-O's annotations for its exclusive CPUs.
        selects_hints: Whether annotations select its topology hints. Not for policies.
    """

    reserved: bool | None = None
    shared: bool | None = None
    isolated: bool | None = None
    require_isolated: bool = False
    cpu_priority: CpuPriority | None = None
    hide_hyperthreads: bool | None = None
    pick_by_hints: bool = False
    memory_kinds: frozenset[MemoryKind] = frozenset()
    cold_start: int = 0
    unlimited_burstable: TreeLevel | None = None
    strict_hints: bool = False
    preserve_cpus: bool = False
    preserve_memory: bool = False
    scheduling_class: str = ""
    affinities: tuple[Affinity, ...] = ()
    balloon: str = ""
    pod_pool: str = ""
    dynamic_pool: str = ""
    cpu_class: ClassRequest | None = None
    irq: IrqRequest | None = None
    rdt_class: ClassRequest | None = None
    blockio_class: ClassRequest | None = None
    top_tier_limit: Bytes | None = None
    isolation: IsolationRequest | None = None
    selects_hints: bool = False


NO_PREFERENCES: Final = Preferences()
"""The preferences of a container without annotations, as most are."""
