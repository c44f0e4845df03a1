"""Memory of containers in balloons: requests to the memory allocator and grants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.settings import BalloonType, MemoryBy
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import (
    PRIORITIES,
    USUAL_KINDS,
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

# Looked up once: an enum's member takes as long as making a list in Python 3.11.
_LIMIT: Final = MemoryBy.LIMIT

# Slow memory is for types and containers that name it.
_DRAM: Final = frozenset({MemoryKind.DRAM})


def grant_memory(
    spec: ContainerSpec, state: State, context: Context
) -> tuple[State, dict[str, None]]:
    """Grant memory to a container in a balloon; also return ids whose memory moved.

    A container with a grant keeps its nodes, and its new request is accounted; where
    its type leaves memory alone, it has none any more.
    """
    name, memory = state.memberships[spec.id].balloon, state.memory
    if not name or not context.type_of(state.balloons[name]).pin_memory:
        left = memory.release(spec.id) if spec.id in memory else memory
        return replace(state, memory=left), {}
    offer = _offer(spec, name, state, context)
    if offer is None:
        return state, {}
    moved = [one.id for one in offer.moved] if offer.widened else ()
    return replace(state, memory=offer.ledger), dict.fromkeys(moved)


def follow_cpus(
    containers: Iterable[str], state: State, context: Context
) -> tuple[State, dict[str, None]]:
    """Grant memory to containers that moved to other balloons.

    They keep the nodes that they have, and also get those of their new CPUs.

    Returns:
        The new state, and the ids of all whose pins may differ, these included.
    """
    affected: dict[str, None] = {}
    for key in containers:
        state, moved = grant_memory(state.ledger.spec_of(key), state, context)
        affected |= {key: None} | moved
        if key in state.memory:
            balloon = state.balloons[state.memberships[key].balloon]
            near = state.allowed_cpus(balloon)
            memory, moved = add_nearby_nodes((key,), near, state.memory, context)
            state, affected = replace(state, memory=memory), affected | moved
    return state, affected


def offer_memory(
    spec: ContainerSpec,
    kind: BalloonType,
    cpus: CpuSet,
    memory: MemoryLedger,
    context: Context,
) -> MemoryOffer:
    """Offer a new container memory near its CPUs; never refuses.

    The sum of limits often exceeds the node's memory. A container that does not fit
    gets the nodes of its CPUs, and what exceeds them is not accounted.
    """
    request = request_of(spec, kind, cpus, context)
    try:
        return allocate_memory(request, memory)
    except PolicyError:
        return adopt_memory(request, request.affinity, memory)


def reoffer_memory(
    request: MemoryRequest, zone: NodeSet, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a running container the nodes that it has, as far as memory is free."""
    if zone and zone.bits & ~memory.layout.nodes == 0:
        try:
            return restore_memory(request, zone, memory)
        except PolicyError:
            return adopt_memory(request, zone, memory)
    try:
        return allocate_memory(request, memory)
    except PolicyError:
        return adopt_memory(request, request.affinity, memory)


def add_nearby_nodes(
    containers: Iterable[str], cpus: CpuSet, memory: MemoryLedger, context: Context
) -> tuple[MemoryLedger, dict[str, None]]:
    """Add the nodes of *cpus* to those of containers; also return ids that got some."""
    near = context.nodes_of(cpus)
    moved: dict[str, None] = {}
    # Computed once per set of kinds: most containers want the same.
    wanted: dict[frozenset[MemoryKind], int] = {}
    for container in containers:
        known = memory.grants.get(container)
        if known is None or known.request.priority is MemoryPriority.PRESERVED:
            continue
        kinds = known.request.kinds
        if (nodes := wanted.get(kinds)) is None:
            layout = memory.layout
            usable = layout.of_kinds(kinds) if kinds else layout.nodes
            nodes = wanted[kinds] = near.bits & layout.nodes & usable
        if nodes & ~known.zone.bits:
            offer = grow_memory(container, memory, nodes=near, kinds=kinds)
            moved |= dict.fromkeys((container, *(one.id for one in offer.moved)))
            memory = offer.ledger
    return memory, moved


def request_of(
    spec: ContainerSpec, kind: BalloonType, cpus: CpuSet, context: Context
) -> MemoryRequest:
    """Build the request of a container to the memory allocator."""
    machine = context.machine
    kinds = spec.preferences.memory_kinds or kind.memory_kinds or _DRAM
    # A machine may have none of them.
    kinds = kinds & context.kinds or USUAL_KINDS & context.kinds
    # A balloon without CPUs is near to all nodes.
    near = context.nodes_of(cpus) or machine.node_ids
    priority = PRIORITIES[spec.qos]
    if spec.preferences.preserve_memory:
        near = spec.present.mems & machine.node_ids or machine.node_ids
        kinds, priority = frozenset(), MemoryPriority.PRESERVED
    size = size_of(spec, context.settings.memory_by)
    return MemoryRequest(
        spec.id,
        near,
        size,
        spec.hugepages,
        kinds,
        priority=priority,
        title=spec.title or spec.id,
    )


def size_of(spec: ContainerSpec, by: MemoryBy) -> Bytes:
    """Return how much memory is accounted for a container: its limit or its request."""
    if by is _LIMIT:
        return spec.memory_limit or Bytes(0)
    return spec.memory_request or spec.memory_limit or Bytes(0)


def _offer(
    spec: ContainerSpec, name: str, state: State, context: Context
) -> MemoryOffer | None:
    kind, memory = context.type_of(state.balloons[name]), state.memory
    cpus = state.allowed_cpus(state.balloons[name])
    if spec.id not in memory:
        return offer_memory(spec, kind, cpus, memory, context)
    known = memory.grants[spec.id]
    request = request_of(spec, kind, cpus, context)
    if known.request.demand == request.demand:
        return None
    return reoffer_memory(request, known.zone, memory.release(spec.id))
