"""By what pools are compared, and in which order: the first difference decides."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import neg
from typing import Final, TypeAlias

from nri_resmgr.policy.cpus import CpuPriority, machine_priorities
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.affinity_score import attraction, pool_scores
from nri_resmgr.policy.topology_aware.demand import Demand
from nri_resmgr.policy.topology_aware.hint_scores import hint_score
from nri_resmgr.policy.topology_aware.memory import (
    MemoryOffers,
    depends_on_pool,
    limit_above_request,
)
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Books
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.state import Room
from nri_resmgr.values import CpuSet, QosClass


class Asked(dict[int, int]):
    """Merits that take long to find, each found once, when it is asked for.

    Args:
        find: Returns the merit of the pool of some id.

    >>> Asked(abs)[-3]
    3
    """

    def __init__(self, find: Callable[[int], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, pool: int) -> int:
        found = self[pool] = self._find(pool)
        return found


Row: TypeAlias = Sequence[int] | Asked
"""The merits of all pools."""


_CPU: Final = 1000  # thousandths
_THERE: Final = 2


class Stage(enum.StrEnum):
    """What told a pool from the last one that was as good until then."""

    ONLY_ONE = "only-one"
    CAPACITY = "capacity"
    ISOLATED = "isolated-cpus"
    AFFINITY = "affinity"
    HINTS = "hints"
    MEMORY_OFFER = "memory-offer"
    MEMORY_KINDS = "memory-kinds"
    MEMORY_LIMIT = "memory-capacity-for-limit"
    BURSTABLE_LIMIT = "burstable-limit"
    BURSTABLE_LEVEL = "burstable-level"
    FEWER_NODES = "fewer-nodes"
    CPU_PRIORITY = "cpu-priority"
    DEPTH = "depth"
    COLOCATION = "colocation"
    SPREAD = "spread"
    DISTURBANCE = "fewer-touched"
    ID = "id"


# Looked up once, since most choices name them: with enums of Python 3.11 that takes as
# long as comparing all pools of a common machine.
ONLY_ONE: Final = Stage.ONLY_ONE
CAPACITY: Final = Stage.CAPACITY
_LEVEL: Final = Stage.BURSTABLE_LEVEL
_FEWER_NODES: Final = Stage.FEWER_NODES
_DEPTH: Final = Stage.DEPTH
_COLOCATION: Final = Stage.COLOCATION
_SPREAD: Final = Stage.SPREAD
_BURSTABLE: Final = QosClass.BURSTABLE

Step: TypeAlias = tuple[Stage, Row]

_BY_ID: Final[Step] = (Stage.ID, Asked(neg))


def steps_of(demand: Demand, room: Room) -> list[Step]:
    """Return the comparisons that matter for a container, the weightiest first.

    The merits of a pool depend on no other pool, so that the order is total: no
    two pools are alike in all of them. Those that take long to find are not found
    before they are asked for.

    Source:
        nri-plugins, topology-aware, ``pools.go``, ``compareScores``, with the
        branches put right that answered differently when asked the other way round.
    """
    spec, tree, books = demand.spec, room.tree, room.books
    steps = list(_by_wishes(demand, room))
    level = _wanted_level(demand, room)
    memory = None
    if depends_on_pool(spec, tree):
        memory = MemoryOffers(spec, room)
        steps += _by_memory(demand, memory, level)
    if level is not None:
        steps += _by_level(level, books)
        return steps
    spares, limit = books.spares, spec.limit
    if limit and spec.qos is _BURSTABLE and limit > min(spares):
        steps.append((Stage.BURSTABLE_LIMIT, [spare >= limit for spare in spares]))
    if memory is not None:
        steps.append((_FEWER_NODES, memory.narrowness))
        if spec.preferences.memory_kinds:
            steps.append((Stage.MEMORY_KINDS, Asked(memory.has_kinds)))
    steps += _by_cpus(demand, room)
    return steps


def has_isolated(demand: Demand, pool: Pool, books: Books) -> bool:
    """Tell whether a pool has all the isolated CPUs that are wanted, and the rest."""
    if not demand.isolated:
        return False
    free = pool.isolated.bits & ~books.taken.bits
    shares = not demand.fraction or books.spare(pool) >= demand.fraction
    return free.bit_count() >= demand.count and shares


def _by_wishes(demand: Demand, room: Room) -> Iterator[Step]:
    tree, books = room.tree, room.books
    if demand.isolated:
        yield Stage.ISOLATED, [has_isolated(demand, one, books) for one in tree.pools]
    if weights := attraction(demand.spec, room.ledger, room.settings):
        yield Stage.AFFINITY, pool_scores(weights, room.grants, tree)
    if demand.spec.hints:
        yield from _by_hints(demand, tree)


def _by_hints(demand: Demand, tree: PoolTree) -> Iterator[Step]:
    hints = demand.spec.hints
    scores = [hint_score(hints, one, tree) for one in tree.pools]
    yield Stage.HINTS, [score.all_hints for score in scores]
    yield Stage.HINTS, [score.matched for score in scores]
    # Among pools that are as near to something, nothing else is looked at.
    near = [(one, score.matched) for one, score in zip(tree.pools, scores, strict=True)]
    yield _DEPTH, [pool.depth if matched else 0 for pool, matched in near]
    yield Stage.ID, [-pool.id if matched else 0 for pool, matched in near]


def _by_memory(
    demand: Demand, memory: MemoryOffers, level: TreeLevel | None
) -> Iterator[Step]:
    if not memory.fits_everywhere:
        yield Stage.MEMORY_OFFER, Asked(memory.fits)
    if limit_above_request(demand.spec):
        if demand.spec.memory_limit is not None:
            yield Stage.MEMORY_LIMIT, memory.holds_limit
        elif level is None:
            # The largest pool is the root: no level could be asked for otherwise.
            yield Stage.MEMORY_LIMIT, memory.capacity


def _wanted_level(demand: Demand, room: Room) -> TreeLevel | None:
    """Return the level for a Burstable container without a CPU limit."""
    spec = demand.spec
    if spec.qos is not _BURSTABLE or spec.limit:
        return None
    wanted = spec.preferences.unlimited_burstable or room.settings.unlimited_burstable
    return room.tree.level_or_coarser(wanted)


def _by_level(wanted: TreeLevel, books: Books) -> Iterator[Step]:
    """Compare Burstable pools without a CPU limit; nothing is looked at after this."""
    at_level = _nearness(books.tree, wanted)
    yield _LEVEL, at_level
    rows = zip(at_level, books.spares, strict=True)
    yield _SPREAD, [spare if near == _THERE else 0 for near, spare in rows]
    yield _BY_ID


@lru_cache(maxsize=16)
def _nearness(tree: PoolTree, wanted: TreeLevel) -> tuple[int, ...]:
    """Say for each pool, by id, whether it is of a level, or else of a finer one."""
    levels = tuple(TreeLevel)
    finer = levels[levels.index(wanted) + 1 :]
    return tuple(
        _THERE if pool.level is wanted else pool.level in finer for pool in tree.pools
    )


def _by_cpus(demand: Demand, room: Room) -> Iterator[Step]:
    books, tree = room.books, room.tree
    if demand.count and demand.priority in (CpuPriority.HIGH, CpuPriority.LOW):
        yield Stage.CPU_PRIORITY, _of_priority(demand, room)
    yield _DEPTH, tree.depths
    if demand.count and demand.priority is CpuPriority.NORMAL:
        yield Stage.CPU_PRIORITY, _of_priority(demand, room)
    if not demand.count:
        yield _COLOCATION, [-count for count in books.guests[demand.kind]]
    if demand.isolated:
        yield _SPREAD, [_left(demand, one, books) for one in tree.pools]
    else:
        yield _SPREAD, books.spares
    if demand.count:
        pools = tree.pools
        yield Stage.DISTURBANCE, Asked(lambda key: -_touched(demand, pools[key], books))
    yield _BY_ID


def _of_priority(demand: Demand, room: Room) -> Row:
    """Tell whether there are enough CPUs of the class; isolated ones have none."""
    books, wanted = room.books, _of_class(room.tree, demand.priority).bits

    def merit(key: int) -> int:
        pool = room.tree.pools[key]
        if has_isolated(demand, pool, books):
            return True
        free = pool.sharable.bits & wanted & ~books.taken.bits
        return _CPU * free.bit_count() >= demand.capacity

    return Asked(merit)


@lru_cache(maxsize=16)
def _of_class(tree: PoolTree, priority: CpuPriority) -> CpuSet:
    sets = machine_priorities(tree.machine)
    if priority is CpuPriority.HIGH:
        return sets.high
    if priority is CpuPriority.LOW:
        return sets.low
    return tree.machine.online - sets.high - sets.low


def _left(demand: Demand, pool: Pool, books: Books) -> int:
    """Return what a pool has of the CPUs that the container would come from."""
    if has_isolated(demand, pool, books):
        return (pool.isolated.bits & ~books.taken.bits).bit_count()
    return books.spare(pool)


def _touched(demand: Demand, pool: Pool, books: Books) -> int:
    """Count the containers that CPUs may be taken from; nobody shares isolated ones."""
    if has_isolated(demand, pool, books):
        return 0
    rows = [books.guests[kind] for kind in SHARING]
    return sum(row[one] for one in {*pool.path, *pool.subtree} for row in rows)
