"""What annotations ask for a container beyond its resources."""

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
    """Levels of a tree of pools, coarse to fine; the words of documents."""

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
    """A container's effective annotations, read; None where they are silent.

    Attributes:
        reserved: Into the reserved CPUs, or out of them.
        shared: On shared CPUs, or not.
        isolated: On isolated CPUs, or not.
        require_isolated: Whether other CPUs of its own are worse than a refusal.
        cpu_priority: The class of CPUs that its own ones should be of.
        hide_hyperthreads: One thread of each core, or all that there are.
        pick_by_hints: Whether its own CPUs are spread evenly over its hints of
            pod resources, and its memory is bound to just their nodes.
        memory_kinds: Kinds of memory; none for the default.
        cold_start: Seconds after the start until it gets DRAM; 0 for no cold start.
        unlimited_burstable: Where it goes if it is Burstable without a CPU limit.
        strict_hints: Whether it must be inside of every hint.
        preserve_cpus: Whether its CPUs are left alone.
        preserve_memory: Whether its memory nodes are left alone.
        scheduling_class: Name of a class; empty where none is asked for.
        affinities: Rules in the order in which they are written.
        balloon: Name of a balloon type; empty where none is asked for.
        cpu_class: Of CPUs that it has to itself.
        irq: Which interrupts CPUs that it has to itself take.
        rdt_class: Of cache and memory bandwidth. No policy asks.
        blockio_class: Of block I/O. No policy asks.
        isolation: What CRI-O's annotations ask of CPUs that it has to itself.
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
"""Of a container without annotations; most have none."""
