"""Memory for a container of a pool: what it asks the memory allocator for."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.memory_preferences import PRIORITIES, USUAL_KINDS
from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryRequest,
    allocate_memory,
    grow_memory,
    restore_memory,
)
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, NodeSet, PolicyError

# What a cold start is without. HBM is not meant: its owner asked for it by name.
_LATE: Final = frozenset({MemoryKind.DRAM})


def promise(
    spec: ContainerSpec, pool: Pool, tree: PoolTree, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a new container memory of its pool.

    Raises:
        PolicyError: There is not enough, whoever is widened.
    """
    return allocate_memory(request_of(spec, pool, tree), memory)


def promise_again(
    request: MemoryRequest, zone: NodeSet, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a container that runs the nodes it has, else what comes next.

    Raises:
        PolicyError: Never for a request of 0 bytes.
    """
    if zone and zone.bits & ~memory.layout.nodes == 0:
        try:
            return restore_memory(request, zone, memory)
        except PolicyError:
            pass  # what it has is not enough any more; look further
    return allocate_memory(request, memory)


def end_of_cold_start(container: str, pool: Pool, memory: MemoryLedger) -> MemoryOffer:
    """Offer a container the DRAM that it did without so far."""
    return grow_memory(container, memory, nodes=pool.nodes, kinds=_LATE)


def request_of(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> MemoryRequest:
    """Say what a container asks the memory allocator for."""
    if spec.preferences.preserve_memory:
        return MemoryRequest(
            id=spec.id,
            title=spec.title or spec.id,
            affinity=spec.present.mems & tree.root.nodes or tree.root.nodes,
            size=size_of(spec),
            hugepages=spec.hugepages,
            priority=MemoryPriority.PRESERVED,
        )
    wish, kinds = spec.preferences, kinds_of(spec, pool, tree)
    if wish.cold_start and is_cold(spec, pool, tree):
        kinds -= _LATE
    near = _hinted(spec, tree) if wish.pick_by_hints else pool.nodes
    return MemoryRequest(
        spec.id,
        near or pool.nodes or tree.root.nodes,
        size_of(spec),
        spec.hugepages,
        kinds,
        priority=PRIORITIES[spec.qos],
        title=spec.title or spec.id,
    )


def size_of(spec: ContainerSpec) -> Bytes:
    """Return how much memory counts for a container: its request, else its limit."""
    return spec.memory_request or spec.memory_limit or Bytes(0)


def kinds_of(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> frozenset[MemoryKind]:
    """Return the kinds of memory wanted; none where all of the pool's will do."""
    if wanted := spec.preferences.memory_kinds:
        return wanted & tree.kinds_in(tree.root)
    return _usual_kinds(tree.kinds_in(pool))


@lru_cache(maxsize=64)
def _usual_kinds(kinds: frozenset[MemoryKind]) -> frozenset[MemoryKind]:
    return USUAL_KINDS & kinds  # asked of every container, of very few sets


def is_cold(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> bool:
    """Tell whether a container starts without DRAM.

    Not where it would have no memory then, or none that the kernel can use for
    itself: no process could start.
    """
    if not spec.preferences.cold_start or spec.preferences.preserve_memory:
        return False
    kinds = kinds_of(spec, pool, tree)
    slow = tree.nodes_of(tree.root, kinds - _LATE)
    return bool(kinds & _LATE) and bool(slow & tree.machine.normal_nodes)


def _hinted(spec: ContainerSpec, tree: PoolTree) -> NodeSet:
    devices = (hint.nodes for hint in spec.hints if hint.is_pod_resource)
    return NodeSet.union(devices) & tree.root.nodes
