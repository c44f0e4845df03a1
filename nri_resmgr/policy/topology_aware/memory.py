"""Memory of containers in pools: requests, offers, scores of pools and cold starts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, ContainerSpec
from nri_resmgr.policy.mems import (
    BASE_PAGES,
    PRIORITIES,
    USUAL_KINDS,
    MemoryLayout,
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryRequest,
    allocate_memory,
    fit_memory,
    grow_memory,
    restore_memory,
)
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.state import NodeView, TopologyAwareState
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import Bytes, NodeSet, PolicyError

# Withheld during a cold start. HBM is not: it is only granted where asked for by name.
_WITHHELD: Final = frozenset({MemoryKind.DRAM})


def offer_memory(
    spec: ContainerSpec, pool: Pool, tree: PoolTree, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a new container memory near its pool.

    Raises:
        PolicyError: Memory is short even if all other requests are widened.
    """
    return allocate_memory(request_of(spec, pool, tree), memory)


def offer_same_memory(
    request: MemoryRequest, zone: NodeSet, memory: MemoryLedger
) -> MemoryOffer:
    """Offer a running container its present nodes, or else the next best ones.

    Raises:
        PolicyError: Never for a request of 0 bytes.
    """
    if zone and zone.bits & ~memory.layout.nodes == 0:
        try:
            return restore_memory(request, zone, memory)
        except PolicyError:
            pass  # its nodes no longer suffice
    return allocate_memory(request, memory)


def request_of(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> MemoryRequest:
    """Return the request for the memory allocator."""
    if spec.preferences.preserve_memory:
        return MemoryRequest(
            id=spec.id,
            title=spec.title or spec.id,
            affinity=spec.present.mems & tree.root.nodes or tree.root.nodes,
            size=size_of(spec),
            hugepages=spec.hugepages,
            priority=MemoryPriority.PRESERVED,
        )
    preferences, kinds = spec.preferences, kinds_of(spec, pool, tree)
    if preferences.cold_start and is_cold(spec, pool, tree):
        kinds -= _WITHHELD
    near = pool.nodes
    if preferences.pick_by_hints:
        devices = (hint.nodes for hint in spec.hints if hint.is_pod_resource)
        near = NodeSet.union(devices) & tree.root.nodes
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
    """Return the memory size to account for: the request, else the limit."""
    return spec.memory_request or spec.memory_limit or Bytes(0)


def kinds_of(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> frozenset[MemoryKind]:
    """Return the preferred kinds of memory; empty where the pool has no usual kind."""
    if wanted := spec.preferences.memory_kinds:
        return wanted & tree.kinds_in(tree.root)
    return _usual_kinds(tree.kinds_in(pool))


@lru_cache(maxsize=64)  # called for every container, with few different sets
def _usual_kinds(kinds: frozenset[MemoryKind]) -> frozenset[MemoryKind]:
    return USUAL_KINDS & kinds


def is_cold(spec: ContainerSpec, pool: Pool, tree: PoolTree) -> bool:
    """Return whether a container starts without DRAM.

    False where it would be left without memory that the kernel can use for itself:
    no process could start.
    """
    if not spec.preferences.cold_start or spec.preferences.preserve_memory:
        return False
    kinds = kinds_of(spec, pool, tree)
    slow = tree.nodes_of(tree.root, kinds - _WITHHELD)
    return bool(kinds & _WITHHELD) and bool(slow & tree.machine.normal_nodes)


def cold_start_timers(
    containers: Iterable[str], state: TopologyAwareState
) -> tuple[Timer, ...]:
    """Return the timers that end the cold starts of started containers."""
    timers = []
    for key in containers:
        if _is_cold(key, state):
            spec = state.ledger.spec_of(key)
            seconds = spec.preferences.cold_start
            timers.append(Timer(ColdStartEnded(key), seconds, spec.started))
    return tuple(timers)


def end_cold_start(
    container: str, state: TopologyAwareState
) -> tuple[TopologyAwareState, MemoryOffer] | None:
    """Grant a container the DRAM that was withheld, by the returned offer.

    None where the container is gone or has DRAM already.
    """
    if not _is_cold(container, state):
        return None
    offer = _dram_offer(container, state)
    return replace(state, memory=offer.ledger), offer


def _is_cold(container: str, state: TopologyAwareState) -> bool:
    if container not in state.ledger:
        return False
    spec, tree = state.ledger.spec_of(container), state.pool_ledger.tree
    if not is_cold(spec, tree.pools[state.grants[container].pool], tree):
        return False
    return _dram_offer(container, state).zone != state.memory.zone_of(container)


def _dram_offer(container: str, state: TopologyAwareState) -> MemoryOffer:
    """Offer the DRAM that was withheld during a cold start."""
    pool = state.pool_ledger.tree.pools[state.grants[container].pool]
    return grow_memory(container, state.memory, nodes=pool.nodes, kinds=_WITHHELD)


class _Starts(msgspec.Struct, frozen=True):
    """The memory that a container would start with in each pool, by pool id.

    Attributes:
        zones: The nodes, as masks; `all_zones` has each once.
        narrowness: The largest number of nodes of one kind, negated.
        capacities: Capacity of the nodes, in bytes.
    """

    zones: tuple[int, ...]
    narrowness: tuple[int, ...]
    capacities: tuple[int, ...]
    all_zones: tuple[int, ...]


class MemoryOffers:
    """Scores of pools by the memory that they offer one container; more is better.

    A full offer, which computes what other requests would be widened, is expensive.
    It is made only for pools whose own memory does not suffice, and only on demand.
    Whether an offer exists does not depend on the pool, since all requests can be
    widened to all nodes. Neither do the offered kinds: what a pool lacks is taken
    from elsewhere.

    Attributes:
        capacities: Total capacity of the nodes, by pool id.
        narrowness: Negated number of nodes of one kind, by pool id, if all else were
            free. Nodes of different kinds are not added up: a CXL node is as near as
            the DRAM node of its package.
        fits_everywhere: Whether the request fits every pool with nothing widened.
    """

    def __init__(self, spec: ContainerSpec, view: NodeView) -> None:
        self._spec = spec
        self._view = view
        preferences = spec.preferences
        starts = _starts(
            view.tree, preferences.memory_kinds, bool(preferences.cold_start)
        )
        self._zones = starts.zones
        self._demand = _amounts(spec, view.tree)
        self._fits: dict[int, bool] = {}
        self._is_short = False
        self.capacities = starts.capacities
        self.narrowness = starts.narrowness
        accounts = view.memory.accounts
        self.fits_everywhere = all(
            accounts.has_room_anywhere(page, amount) for page, amount in self._demand
        ) or all(map(self._fits_zone, starts.all_zones))

    def fits(self, key: int) -> int:
        """Return whether the request fits the pool with no other request widened."""
        return self._fits_zone(self._zones[key])

    def has_kinds(self, key: int) -> int:
        """Return whether the pool itself has all preferred kinds."""
        tree = self._view.tree
        pool = tree.pools[key]
        return kinds_of(self._spec, pool, tree) <= tree.kinds_in(pool)

    def narrowness_of_offer(self, key: int) -> int:
        """Return the narrowness of a pool as things are: this may need a full offer."""
        expected, view = self.narrowness[key], self._view
        if self._is_short or self.fits(key):
            return expected
        pool = view.tree.pools[key]
        try:
            offer = offer_memory(self._spec, pool, view.tree, view.memory)
        except PolicyError:  # the same for all pools, see above
            self._is_short = True
            return expected
        return -_width(offer.zone.bits, view.memory.layout)

    def _fits_zone(self, zone: int) -> bool:
        found = self._fits.get(zone)
        if found is None:
            accounts = self._view.memory.accounts
            found = True
            for page, amount in self._demand:
                found = found and accounts.has_room(zone, page, amount)
            self._fits[zone] = found
        return found


def depends_on_pool(spec: ContainerSpec, tree: PoolTree) -> bool:
    """Return whether a container's memory depends on its pool."""
    return bool(tree.memory.nodes) and not spec.preferences.preserve_memory


def limit_above_request(spec: ContainerSpec) -> bool:
    """Return whether a container may use more memory than is accounted for it."""
    size = size_of(spec)
    return bool(size) and spec.memory_limit != size


def _amounts(spec: ContainerSpec, tree: PoolTree) -> tuple[tuple[Bytes, int], ...]:
    if spec.hugepages:
        return request_of(spec, tree.root, tree).demand
    size = size_of(spec)  # the common case, without building a request
    return ((BASE_PAGES, size),) if size else ()


# Needed at every creation, for few combinations of arguments.
@lru_cache(maxsize=64)
def _starts(
    tree: PoolTree,
    kinds: frozenset[MemoryKind],
    cold: bool,  # noqa: FBT001 - positional keys make the cache faster
) -> _Starts:
    preferences = Preferences(memory_kinds=kinds, cold_start=int(cold))
    spec, layout = ContainerSpec("", preferences=preferences), tree.memory
    empty = MemoryLedger.counted(layout)
    zones = tuple(
        fit_memory(request_of(spec, pool, tree), empty).zone.bits for pool in tree.pools
    )
    return _Starts(
        zones,
        tuple(-_width(zone, layout) for zone in zones),
        tuple(layout.total(zone, BASE_PAGES) for zone in zones),
        tuple(dict.fromkeys(zones)),
    )


@lru_cache(maxsize=1024)
def _width(zone: int, layout: MemoryLayout) -> int:
    return max((nodes & zone).bit_count() for nodes in layout.kinds.values())
