"""What the pools of the tree have, and how much of it is granted."""

from __future__ import annotations

from nri_resmgr.policy.capacity import PoolUse
from nri_resmgr.policy.topology_aware.demand import RESERVED_POOL, CpuKind
from nri_resmgr.policy.topology_aware.pools import Pool
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import Bytes, MilliCpus

_CPU = 1000  # thousandths
_ELSEWHERE = (CpuKind.RESERVED, CpuKind.PRESERVED)


def uses_of(state: TopologyAwareState) -> tuple[PoolUse, ...]:
    """Go through the pools from the root down, and the reserved CPUs first.

    Reserved CPUs are counted on their own, in no pool. CPUs that a container has to
    itself count in every pool that they are in; what it has of shared ones, in the
    pool that it was granted from and in those above.
    """
    tree = state.books.tree
    pools = tuple(_of_pool(pool, state) for pool in reversed(tree.pools))
    return (_of_reserved(state), *pools) if tree.root.reserved else pools


def _of_pool(pool: Pool, state: TopologyAwareState) -> PoolUse:
    books, memory, tree = state.books, state.memory, state.books.tree
    own = books.taken & pool.cpus
    return PoolUse(
        kind=pool.level.value,
        name=pool.name,
        cpus=pool.cpus,
        within="" if pool.parent is None else tree.pools[pool.parent].name,
        shared=books.free_sharable(pool),
        isolated=books.free_isolated(pool),
        exclusive=own,
        reserved=pool.reserved,
        capacity=MilliCpus(_CPU * len(pool.sharable | pool.isolated)),
        granted=MilliCpus(_CPU * len(own) + books.shared[pool.id]),
        free=MilliCpus(max(books.spare(pool), 0)),
        mems=pool.nodes,
        memory=Bytes(memory.capacity(pool.nodes)),
        memory_granted=Bytes(memory.usage(pool.nodes)),
        containers=tuple(
            key
            for key in state.ledger.entries
            if state.grants[key].pool == pool.id
            and state.grants[key].kind not in _ELSEWHERE
        ),
    )


def _of_reserved(state: TopologyAwareState) -> PoolUse:
    books, cpus = state.books, state.books.tree.root.reserved
    return PoolUse(
        kind="reserved",
        name=RESERVED_POOL,
        cpus=cpus,
        reserved=cpus,
        capacity=MilliCpus(_CPU * len(cpus)),
        granted=MilliCpus(books.reserved),
        free=MilliCpus(max(books.spare_reserved, 0)),
        mems=books.tree.machine.nodes_of(cpus),
        containers=tuple(
            key
            for key in state.ledger.entries
            if state.grants[key].kind is CpuKind.RESERVED
        ),
    )
