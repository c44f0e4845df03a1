"""Memory for a container of a balloon: what it asks the memory allocator for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.settings import BalloonType, MemoryBy
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import (
    PRIORITIES,
    USUAL_KINDS,
    MemoryLayout,
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryRequest,
    adopt_memory,
    allocate_memory,
    grow_memory,
    restore_memory,
)
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, CpuSet, NodeSet, PolicyError

# Looked up once: with enums of Python 3.11 that takes as long as making a list.
_LIMIT: Final = MemoryBy.LIMIT


def promise(
    spec: ContainerSpec,
    kind: BalloonType,
    cpus: CpuSet,
    memory: MemoryLedger,
    ground: Ground,
) -> MemoryOffer:
    """Offer a new container memory near its CPUs.

    Nobody is refused for memory: limits are often more than there is. What does not
    fit is not counted, and the container has the nodes of its CPUs.
    """
    request = request_of(spec, kind, cpus, ground)
    try:
        return allocate_memory(request, memory)
    except PolicyError:
        return adopt_memory(request, request.affinity, memory)


def promise_again(
    request: MemoryRequest, zone: NodeSet, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a container that runs the nodes it has, as far as there is room."""
    if zone and zone.bits & ~memory.layout.nodes == 0:
        try:
            return restore_memory(request, zone, memory)
        except PolicyError:
            return adopt_memory(request, zone, memory)
    try:
        return allocate_memory(request, memory)
    except PolicyError:
        return adopt_memory(request, request.affinity, memory)


def follow_cpus(
    containers: Iterable[str], cpus: CpuSet, memory: MemoryLedger, ground: Ground
) -> tuple[MemoryLedger, dict[str, None]]:
    """Add the nodes of CPUs to what containers have; they lose none.

    Returns:
        What all have then, and whose nodes changed.
    """
    near = ground.nodes_of(cpus)
    moved: dict[str, None] = {}
    wanted: dict[frozenset[MemoryKind], int] = {}  # of many who want the same
    for container in containers:
        known = memory.grants.get(container)
        if known is None or known.request.priority is MemoryPriority.PRESERVED:
            continue
        kinds = known.request.kinds
        if (nodes := wanted.get(kinds)) is None:
            nodes = wanted[kinds] = _of_kinds(kinds, near, memory.layout)
        if nodes & ~known.zone.bits:
            offer = grow_memory(container, memory, nodes=near, kinds=kinds)
            moved |= dict.fromkeys((container, *(one.id for one in offer.moved)))
            memory = offer.ledger
    return memory, moved


def request_of(
    spec: ContainerSpec, kind: BalloonType, cpus: CpuSet, ground: Ground
) -> MemoryRequest:
    """Say what a container asks the memory allocator for."""
    machine = ground.machine
    wished = spec.preferences.memory_kinds or kind.memory_kinds or USUAL_KINDS
    near = ground.nodes_of(cpus) or machine.node_ids
    priority = PRIORITIES[spec.qos]
    if spec.preferences.preserve_memory:
        near = spec.present.mems & machine.node_ids or machine.node_ids
        wished, priority = frozenset(), MemoryPriority.PRESERVED
    size = size_of(spec, ground.settings.memory_by)
    return MemoryRequest(
        spec.id,
        near,
        size,
        spec.hugepages,
        wished & ground.kinds,
        priority=priority,
        title=spec.title or spec.id,
    )


def size_of(spec: ContainerSpec, by: MemoryBy) -> Bytes:
    """Return how much memory counts for a container."""
    if by is _LIMIT:
        return spec.memory_limit or Bytes(0)
    return spec.memory_request or spec.memory_limit or Bytes(0)


def _of_kinds(kinds: frozenset[MemoryKind], near: NodeSet, layout: MemoryLayout) -> int:
    nodes = near.bits & layout.nodes
    return nodes & layout.of_kinds(kinds) if kinds else nodes
