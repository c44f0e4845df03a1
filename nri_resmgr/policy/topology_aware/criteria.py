"""The criteria that pools are compared by, in order: the first difference decides."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import neg
from typing import Final, TypeAlias

from nri_resmgr.policy.cpus import CpuPriority, machine_priorities
from nri_resmgr.policy.preferences import TreeLevel
from nri_resmgr.policy.topology_aware.affinity_score import (
    affinity_scores,
    affinity_weights,
)
from nri_resmgr.policy.topology_aware.demand import EXTREMES, Demand
from nri_resmgr.policy.topology_aware.hint_scores import hint_score
from nri_resmgr.policy.topology_aware.memory import (
    MemoryOffers,
    depends_on_pool,
    limit_above_request,
)
from nri_resmgr.policy.topology_aware.pool_ledger import (
    IN_POOL,
    SHARING,
    PoolLedger,
)
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import CoreKind
from nri_resmgr.values import ONE_CPU, CpuSet, QosClass


class LazyScores(dict[int, int]):
    """Expensive scores by pool id, each computed once, when it is read.

    >>> LazyScores(abs)[-3]
    3
    """

    def __init__(self, find: Callable[[int], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, pool: int) -> int:
        found = self[pool] = self._find(pool)
        return found


Scores: TypeAlias = Sequence[int] | LazyScores
"""The scores of all pools in one criterion, by pool id; more is better."""


_AT_LEVEL: Final = 2


class Criterion(enum.StrEnum):
    """The criteria by name, as logged and reported for the pool that was chosen.

    It is the criterion in which the pool was better than the last other one that had
    been equal in all criteria before. Where none was needed, `ONLY_ONE` stands for no
    other pool, and `CAPACITY` for no other pool with the capacity.
    """

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


# Looked up once: in Python 3.11 reading an enum member takes as long as comparing all
# pools of a common machine.
ONLY_ONE: Final = Criterion.ONLY_ONE
CAPACITY: Final = Criterion.CAPACITY
_LEVEL: Final = Criterion.BURSTABLE_LEVEL
_FEWER_NODES: Final = Criterion.FEWER_NODES
_DEPTH: Final = Criterion.DEPTH
_COLOCATION: Final = Criterion.COLOCATION
_SPREAD: Final = Criterion.SPREAD
_CPU_PRIORITY: Final = Criterion.CPU_PRIORITY
_BURSTABLE: Final = QosClass.BURSTABLE

Comparison: TypeAlias = tuple[Criterion, Scores]

_BY_ID: Final[Comparison] = (Criterion.ID, LazyScores(neg))


def comparisons_of(demand: Demand, view: NodeView) -> list[Comparison]:
    """Return the comparisons that matter for a container, the most important first.

    The score of a pool depends on no other pool and the last criterion is the id, so
    the order is total. Expensive scores are computed on demand.

    Source:
        nri-plugins, topology-aware, ``pools.go``, ``compareScores``, without
        its branches whose result depends on the order of the two pools.
    """
    spec, tree, ledger = demand.spec, view.tree, view.pool_ledger
    comparisons = list(_by_preferences(demand, view))
    level = _wanted_level(demand, view)
    memory = None
    if depends_on_pool(spec, tree):
        memory = MemoryOffers(spec, view)
        comparisons += _by_memory(demand, memory, level)
    if level is not None:
        comparisons += _by_level(level, ledger)
        return comparisons
    limit, capacities = spec.limit, ledger.free_capacities
    if limit and spec.qos is _BURSTABLE and limit > min(capacities):
        comparisons.append((Criterion.BURSTABLE_LIMIT, _up_to(limit, capacities)))
    if demand.asks_priority:
        # A default does not go before fewer memory nodes: all containers have it, and
        # most of them would leave their nodes for it.
        comparisons.append((_CPU_PRIORITY, _suffices(demand, demand.priority, view)))
    if memory is not None:
        width: Scores = memory.narrowness
        if not memory.fits_everywhere:
            width = LazyScores(memory.narrowness_of_offer)
        comparisons.append((_FEWER_NODES, width))
        if spec.preferences.memory_kinds:
            comparisons.append((Criterion.MEMORY_KINDS, LazyScores(memory.has_kinds)))
    comparisons += _by_cpus(demand, view)
    return comparisons


def has_isolated(demand: Demand, pool: Pool, ledger: PoolLedger) -> bool:
    """Return whether a pool has all isolated CPUs asked for, and the fraction."""
    if not demand.isolated:
        return False
    free = pool.isolated.bits & ~ledger.taken.bits
    shares = not demand.fraction or ledger.free_capacity(pool) >= demand.fraction
    return free.bit_count() >= demand.count and shares


def _by_preferences(demand: Demand, view: NodeView) -> Iterator[Comparison]:
    tree, ledger = view.tree, view.pool_ledger
    if demand.isolated:
        enough = [has_isolated(demand, one, ledger) for one in tree.pools]
        yield Criterion.ISOLATED, enough
    if weights := affinity_weights(demand.spec, view.ledger, view.settings):
        yield Criterion.AFFINITY, affinity_scores(weights, view.grants, tree)
    if demand.spec.hints:
        yield from _by_hints(demand, tree)


def _by_hints(demand: Demand, tree: PoolTree) -> Iterator[Comparison]:
    hints = demand.spec.hints
    scores = [hint_score(hints, one, tree) for one in tree.pools]
    yield Criterion.HINTS, [score.all_hints for score in scores]
    yield Criterion.HINTS, [score.matched for score in scores]
    # Pools that match any hint equally well are ranked by depth and id alone.
    near = [(one, score.matched) for one, score in zip(tree.pools, scores, strict=True)]
    yield _DEPTH, [pool.depth if matched else 0 for pool, matched in near]
    yield Criterion.ID, [-pool.id if matched else 0 for pool, matched in near]


def _by_memory(
    demand: Demand, memory: MemoryOffers, level: TreeLevel | None
) -> Iterator[Comparison]:
    if not memory.fits_everywhere:
        yield Criterion.MEMORY_OFFER, LazyScores(memory.fits)
    if limit_above_request(demand.spec):
        if (limit := demand.spec.memory_limit) is not None:
            yield Criterion.MEMORY_LIMIT, _up_to(limit, memory.capacities)
        elif level is None:
            # The largest pool is the root, which would override a requested level.
            yield Criterion.MEMORY_LIMIT, memory.capacities


def _up_to(limit: int, capacities: Sequence[int]) -> Scores:
    """Score pools by how much of a limit they have; those with all of it are equal.

    Where no pool has all of it, a small one would leave the container far below.
    """
    return [one if one < limit else limit for one in capacities]  # noqa: FURB136 - min() is far slower


def _wanted_level(demand: Demand, view: NodeView) -> TreeLevel | None:
    """Return the preferred level of a Burstable container without a CPU limit."""
    spec = demand.spec
    if spec.qos is not _BURSTABLE or spec.limit:
        return None
    wanted = spec.preferences.unlimited_burstable or view.settings.unlimited_burstable
    return view.tree.level_or_coarser(wanted)


def _by_level(wanted: TreeLevel, ledger: PoolLedger) -> Iterator[Comparison]:
    """Compare pools by level and free CPU; these are the last criteria."""
    at_level = _nearness(ledger.tree, wanted)
    yield _LEVEL, at_level
    rows = zip(at_level, ledger.free_capacities, strict=True)
    yield _SPREAD, [free if near == _AT_LEVEL else 0 for near, free in rows]
    yield _BY_ID


@lru_cache(maxsize=16)
def _nearness(tree: PoolTree, wanted: TreeLevel) -> tuple[int, ...]:
    """Return 2 for each pool at a level, 1 for pools below it, 0 for others."""
    finer = tree.levels[tree.levels.index(wanted) + 1 :]
    return tuple(
        _AT_LEVEL if pool.level is wanted else pool.level in finer
        for pool in tree.pools
    )


def _by_cpus(demand: Demand, view: NodeView) -> Iterator[Comparison]:
    ledger, tree = view.pool_ledger, view.tree
    priority = _preferred_priority(demand, tree)
    if demand.count and priority in EXTREMES and not demand.asks_priority:
        yield _CPU_PRIORITY, _suffices(demand, priority, view)
    yield _DEPTH, tree.depths
    if demand.count and priority is not CpuPriority.ANY:
        yield _CPU_PRIORITY, _of_priority(demand, priority, view)
    if not demand.count:
        # Exclusive ones count as well: a pool that they nearly fill is a bad place to
        # share, as all that comes later meets on its last CPU.
        counts = [ledger.container_counts[kind] for kind in IN_POOL]
        yield _COLOCATION, [-sum(row) for row in zip(*counts, strict=True)]
    if demand.isolated:
        yield _SPREAD, [_free_of_kind(demand, one, ledger) for one in tree.pools]
    else:
        yield _SPREAD, ledger.free_capacities
    if demand.count:
        pools = tree.pools
        scores = LazyScores(lambda key: -_affected(demand, pools[key], ledger))
        yield Criterion.DISTURBANCE, scores
    yield _BY_ID


def _preferred_priority(demand: Demand, tree: PoolTree) -> CpuPriority:
    """Return the priority of the CPUs that are preferred.

    Without any wish, efficient cores come last where there are others.
    """
    asked, priority = demand.spec.preferences.cpu_priority, demand.priority
    has_wish = asked is not None or priority is not CpuPriority.ANY
    if has_wish or len(tree.machine.kinds) == 1:
        return priority
    return CpuPriority.HIGH


def _suffices(demand: Demand, priority: CpuPriority, view: NodeView) -> Scores:
    """Score pools by whether they have enough CPUs of a priority."""
    found = _of_priority(demand, priority, view)
    return LazyScores(lambda key: found[key] >= demand.capacity)


def _of_priority(demand: Demand, priority: CpuPriority, view: NodeView) -> Scores:
    """Score pools by their CPUs of a priority, as far as they are needed.

    Isolated CPUs have no priority, so that they always suffice.
    """
    ledger = view.pool_ledger
    wanted = cpus_of_priority(view.tree, priority).bits

    def score_of(key: int) -> int:
        pool = view.tree.pools[key]
        if has_isolated(demand, pool, ledger):
            return demand.capacity
        free = pool.sharable.bits & wanted & ~ledger.taken.bits
        return min(ONE_CPU * free.bit_count(), demand.capacity)

    return LazyScores(score_of)


@lru_cache(maxsize=16)
def cpus_of_priority(tree: PoolTree, priority: CpuPriority) -> CpuSet:
    """Return the online CPUs of a machine that have a priority.

    Where there are efficient cores, all others are of high priority. They are normal as
    well, since by default requests are to get just these.
    """
    machine = tree.machine
    sets = machine_priorities(machine)
    if priority is CpuPriority.HIGH:
        fast = machine.cpus_of_kind(CoreKind.PERFORMANCE)
        return sets.high if fast == machine.online else fast
    if priority is CpuPriority.LOW:
        return sets.low
    return machine.online - sets.high - sets.low


def _free_of_kind(demand: Demand, pool: Pool, ledger: PoolLedger) -> int:
    """Return the free amount of the kind of CPUs that a pool would grant."""
    if has_isolated(demand, pool, ledger):
        return (pool.isolated.bits & ~ledger.taken.bits).bit_count()
    return ledger.free_capacity(pool)


def _affected(demand: Demand, pool: Pool, ledger: PoolLedger) -> int:
    """Count the containers whose shared CPUs would become fewer.

    Taking isolated CPUs affects none, since they are never shared.
    """
    if has_isolated(demand, pool, ledger):
        return 0
    rows = [ledger.container_counts[kind] for kind in SHARING]
    return sum(row[one] for one in {*pool.path, *pool.subtree} for row in rows)
