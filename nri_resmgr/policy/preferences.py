"""Preferences of containers from annotations."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.classes.irq.requests import IrqRequest
from nri_resmgr.classes.isolation.requests import IsolationRequest
from nri_resmgr.policy.affinity import Affinity
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.topology import MemoryKind


class TreeLevel(enum.StrEnum):
    """Levels of a tree of pools, from coarse to fine, as configurations name them."""

    SYSTEM = "system"
    PACKAGE = "package"
    DIE = "die"
    NUMA = "numa"
    L3 = "l3cache"


class Preferences(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
):
    """A container's effective annotations; None where they say nothing.

    Attributes:
        reserved: Whether to use the reserved CPUs.
        shared: Whether to use shared CPUs only.
        isolated: Whether to use isolated CPUs.
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
        affinities: Rules in the order in which they are written.
        balloon: Name of a balloon type; empty for none.
        cpu_class: Class of its exclusive CPUs.
        irq: Interrupts on its exclusive CPUs.
        rdt_class: Class of cache and memory bandwidth. Not for policies.
        blockio_class: Class of block I/O. Not for policies.
        isolation: CRI-O's annotations for its exclusive CPUs.
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
    cpu_class: ClassRequest | None = None
    irq: IrqRequest | None = None
    rdt_class: ClassRequest | None = None
    blockio_class: ClassRequest | None = None
    isolation: IsolationRequest | None = None


NO_PREFERENCES: Final = Preferences()
"""The preferences of a container without annotations, as most are."""
