"""Memory for a container of a pool: what it asks the memory allocator for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

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
from nri_resmgr.policy.topology_aware.criteria import Asked, Row
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.state import Room, TopologyAwareState
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


def ends_to_come(
    containers: Iterable[str], state: TopologyAwareState
) -> tuple[Timer, ...]:
    """Return the ends of the cold starts of containers that have begun."""
    timers = []
    for key in containers:
        if _is_cold(key, state):
            spec = state.ledger.spec_of(key)
            seconds = spec.preferences.cold_start
            timers.append(Timer(ColdStartEnded(key), seconds, spec.started))
    return tuple(timers)


def warm_up(
    container: str, state: TopologyAwareState
) -> tuple[TopologyAwareState, MemoryOffer] | None:
    """Give a container the DRAM that it did without so far.

    Returns:
        What holds then, and the offer that led there; None where it is gone, or
        has such memory already.
    """
    if not _is_cold(container, state):
        return None
    offer = _warm(container, state)
    return msgspec.structs.replace(state, memory=offer.ledger), offer


def _is_cold(container: str, state: TopologyAwareState) -> bool:
    if container not in state.ledger:
        return False
    spec, tree = state.ledger.spec_of(container), state.books.tree
    if not is_cold(spec, tree.pools[state.grants[container].pool], tree):
        return False
    return _warm(container, state).zone != state.memory.zone_of(container)


def _warm(container: str, state: TopologyAwareState) -> MemoryOffer:
    pool = state.books.tree.pools[state.grants[container].pool]
    return end_of_cold_start(container, pool, state.memory)


class _Starts(msgspec.Struct, frozen=True):
    """What a container would get of each pool, by id, if there were no others.

    Attributes:
        zones: The nodes, as masks.
        narrowness: How many of them are of one kind, at most; negative.
        capacities: What they hold, in bytes.
        all_zones: The same masks, each once.
    """

    zones: tuple[int, ...]
    narrowness: tuple[int, ...]
    capacities: tuple[int, ...]
    all_zones: tuple[int, ...]


class MemoryOffers:
    """Answers for one container about the pools of some ids; more is better.

    Where a pool's memory suffices, nothing but that is found out. An offer, which
    tells who would have to give way, is made only of pools that lack memory, and
    only when it is asked for. Whether there is one does not depend on the pool:
    everybody can be widened to all nodes, and then memory is short or it is not.
    Neither do the kinds that are offered: what a pool lacks is taken from elsewhere.

    Attributes:
        fits_everywhere: Whether every pool has room with nobody widened.
    """

    def __init__(self, spec: ContainerSpec, room: Room) -> None:
        self._spec = spec
        self._room = room
        wish = spec.preferences
        self._starts = _starts(room.tree, wish.memory_kinds, bool(wish.cold_start))
        self._demand = _amounts(spec, room.tree)
        self._fits: dict[int, bool] = {}
        self.fits_everywhere = self._fits_each_node() or all(
            map(self._has_room, self._starts.all_zones)
        )
        self._is_short = False

    def fits(self, key: int) -> int:
        """Tell whether there is room with nobody widened."""
        return self._has_room(self._starts.zones[key])

    def has_kinds(self, key: int) -> int:
        """Tell whether all kinds that are wanted are in the pool itself."""
        tree = self._room.tree
        pool = tree.pools[key]
        return kinds_of(self._spec, pool, tree) <= tree.kinds_in(pool)

    @property
    def holds_limit(self) -> Row:
        """Whether the nodes hold as much as the limit, promised or not."""
        limit = self._spec.memory_limit or 0
        return [capacity >= limit for capacity in self._starts.capacities]

    @property
    def capacity(self) -> Row:
        """What the nodes hold, promised or not."""
        return self._starts.capacities

    @property
    def narrowness(self) -> Row:
        """How few nodes of one kind are offered.

        Nodes of different kinds lie beside each other, as memory of CXL does
        beside the node of its package. So it is no worse to have both.
        """
        if self.fits_everywhere:
            return self._starts.narrowness
        return Asked(self._narrowness_of_offer)

    def _narrowness_of_offer(self, key: int) -> int:
        expected, room = self._starts.narrowness[key], self._room
        if self._is_short or self.fits(key):
            return expected
        pool = room.tree.pools[key]
        try:
            offer = promise(self._spec, pool, room.tree, room.memory)
        except PolicyError:  # and so it is with all pools
            self._is_short = True
            return expected
        return -_width(offer.zone.bits, room.memory.layout)

    def _fits_each_node(self) -> bool:
        accounts = self._room.memory.accounts
        for page, amount in self._demand:
            if not accounts.has_room_anywhere(page, amount):
                return False
        return True

    def _has_room(self, zone: int) -> bool:
        found = self._fits.get(zone)
        if found is None:
            accounts = self._room.memory.accounts
            found = True
            for page, amount in self._demand:
                found = found and accounts.has_room(zone, page, amount)
            self._fits[zone] = found
        return found


def depends_on_pool(spec: ContainerSpec, tree: PoolTree) -> bool:
    """Tell whether it matters for a container's memory which pool it is in."""
    return bool(tree.memory.nodes) and not spec.preferences.preserve_memory


def limit_above_request(spec: ContainerSpec) -> bool:
    """Tell whether a container may use more memory than it is placed by."""
    size = size_of(spec)
    return bool(size) and spec.memory_limit != size


def _amounts(spec: ContainerSpec, tree: PoolTree) -> tuple[tuple[Bytes, int], ...]:
    if spec.hugepages:
        return request_of(spec, tree.root, tree).demand
    size = size_of(spec)  # most containers: no request needs to be made to know
    return ((BASE_PAGES, size),) if size else ()


# Machines are few and so are wishes; both tables are asked for at every creation.
@lru_cache(maxsize=64)
def _starts(
    tree: PoolTree,
    kinds: frozenset[MemoryKind],
    cold: bool,  # noqa: FBT001 - positional keys make the cache faster
) -> _Starts:
    wish = Preferences(memory_kinds=kinds, cold_start=int(cold))
    spec, layout = ContainerSpec("", preferences=wish), tree.memory
    nobody = MemoryLedger.counted(layout)
    zones = tuple(
        fit_memory(request_of(spec, pool, tree), nobody).zone.bits
        for pool in tree.pools
    )
    return _Starts(
        zones,
        tuple(-_width(zone, layout) for zone in zones),
        tuple(layout.room(zone, BASE_PAGES) for zone in zones),
        tuple(dict.fromkeys(zones)),
    )


@lru_cache(maxsize=1024)
def _width(zone: int, layout: MemoryLayout) -> int:
    return max((nodes & zone).bit_count() for nodes in layout.kinds.values())
