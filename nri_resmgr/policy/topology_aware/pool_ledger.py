"""Grants of CPUs, and their sums by pool, which are updated incrementally."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, StoredValue

# Looked up once: reading an enum member is slow in Python 3.11.
_RESERVED: Final = CpuKind.RESERVED
_CLAIMED: Final = CpuKind.CLAIMED

SHARING: Final = (CpuKind.SHARED, CpuKind.MIXED)
"""The kinds of grants that include shared CPUs of a pool."""

IN_POOL: Final = (*SHARING, CpuKind.EXCLUSIVE)
"""The kinds of grants that have CPUs of a pool, reserved ones aside."""


class Grant(StoredValue, frozen=True):
    """The CPUs of one container, as one pool granted them.

    Attributes:
        cpus: Exclusive CPUs; those of a claim are taken by the claim's own grant.
        fraction: Thousandths of the pool's shared, or of the reserved, CPUs.
        hidden: Whether it is pinned to one thread of each core only.
        fell_back: Whether the container would get another grant if there were room.
    """

    container: str
    kind: CpuKind
    pool: int
    cpus: CpuSet = NO_CPUS
    fraction: MilliCpus = MilliCpus(0)
    hidden: bool = False
    fell_back: bool = False

    @property
    def shares(self) -> bool:
        """True if it includes shared CPUs of the pool."""
        return self.kind in SHARING


class PoolLedger(msgspec.Struct, frozen=True, dict=True):
    """The sums of all grants; ledgers of the same grants are equal.

    Attributes:
        tree: The pools.
        taken: All exclusive CPUs.
        shared: Thousandths granted from shared CPUs of each pool and of those below,
            by pool id.
        without_request: Number of containers without a request that share these CPUs,
            by pool id.
        container_counts: Number of grants of each kind, by pool id; never changed.
        reserved: Thousandths granted from the reserved CPUs.
        sizes: Thousandths of each pool's sharable CPUs that are not in `taken`, by
            pool id.
    """

    tree: PoolTree
    taken: CpuSet
    shared: tuple[int, ...]
    without_request: tuple[int, ...]
    container_counts: dict[CpuKind, tuple[int, ...]]
    reserved: int
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, tree: PoolTree, grants: Iterable[Grant] = ()) -> PoolLedger:
        """Return the sums of *grants*."""
        nothing = (0,) * len(tree.pools)
        container_counts = dict.fromkeys(CpuKind, nothing)
        sizes = _sizes(tree, NO_CPUS)
        pool_ledger = cls(tree, NO_CPUS, nothing, nothing, container_counts, 0, sizes)
        for grant in grants:
            pool_ledger = pool_ledger.add(grant)
        return pool_ledger

    def of_requests(self) -> PoolLedger:
        """Return these sums without containers that request nothing."""
        if not any(self.without_request):
            return self
        return replace(self, without_request=(0,) * len(self.without_request))

    def add(self, grant: Grant) -> PoolLedger:
        """Add a grant."""
        return self._changed(grant, 1)

    def remove(self, grant: Grant) -> PoolLedger:
        """Remove a grant, which must have been added."""
        return self._changed(grant, -1)

    def share(self, pools: Iterable[int], amount: int) -> PoolLedger:
        """Add to what is granted from the shared CPUs of some pools, by their ids."""
        return replace(self, shared=_plus(self.shared, pools, amount))

    def free_isolated(self, pool: Pool) -> CpuSet:
        """Return the isolated CPUs of *pool* that are not granted."""
        return pool.isolated - self.taken

    def free_sharable(self, pool: Pool) -> CpuSet:
        """Return the CPUs that containers of *pool* share."""
        return pool.sharable - self.taken

    def free_capacity(self, pool: Pool) -> int:
        """Return the thousandths that *pool* and all pools above can still grant.

        Where no container has a request, those without one count as one thousandth
        together: a pool with containers never loses its last shared CPU.
        """
        return self.free_capacities[pool.id]

    def headroom(self, pool: Pool) -> int:
        """Return the thousandths of *pool* beyond what is granted in its subtree."""
        return self._headrooms[pool.id]

    def shortage(self, pool: int, amount: int) -> bool:
        """Return whether *amount* is beyond the headroom of a pool, by its id."""
        return self.sizes[pool] - self.shared[pool] < amount

    @property
    def free_reserved(self) -> int:
        """Thousandths of the reserved CPUs that can still be granted."""
        return ONE_CPU * len(self.tree.root.reserved) - self.reserved

    @cached_property
    def free_capacities(self) -> tuple[int, ...]:
        """The free capacity of each pool, by id."""
        free = self._headrooms
        for here, above in self.tree.below:  # parents first
            if free[above] < free[here]:  # noqa: PLR1730 - min() is far slower
                free[here] = free[above]
        return tuple(free)

    @property
    def _headrooms(self) -> list[int]:
        shared, without_request = self.shared, self.without_request
        return [
            size - (shared[pool] or without_request[pool] > 0)
            for pool, size in enumerate(self.sizes)
        ]

    def _changed(self, grant: Grant, sign: int) -> PoolLedger:
        tree, pool, kind, fraction = self.tree, grant.pool, grant.kind, grant.fraction
        counts = self.container_counts.copy()
        counts[kind] = _plus(counts[kind], (pool,), sign)
        shared, reserved = self.shared, self.reserved
        without_request = self.without_request
        if kind is _RESERVED:
            reserved += sign * fraction
        elif kind in SHARING and fraction:
            shared = _plus(shared, tree.pools[pool].path, sign * fraction)
        elif kind in SHARING:
            without_request = _plus(without_request, tree.pools[pool].path, sign)
        taken, sizes = self.taken, self.sizes
        # The CPUs of claims are in grants of the claims.
        if grant.cpus.bits and kind is not _CLAIMED:
            taken = taken | grant.cpus if sign > 0 else taken - grant.cpus
            sizes = _sizes(tree, taken)
        return PoolLedger(tree, taken, shared, without_request, counts, reserved, sizes)


def _sizes(tree: PoolTree, taken: CpuSet) -> tuple[int, ...]:
    free = ~taken.bits
    return tuple(ONE_CPU * (cpus & free).bit_count() for cpus in tree.sharable)


def grant_of(demand: Demand, pool: Pool, cpus: CpuSet = NO_CPUS) -> Grant:
    """Return the grant of a demand from *pool*, with *cpus* as exclusive ones."""
    spec, hidden = demand.spec, bool(demand.spec.preferences.hide_hyperthreads)
    return Grant(spec.id, demand.kind, pool.id, cpus, demand.fraction, hidden)


def _plus(sums: tuple[int, ...], places: Iterable[int], amount: int) -> tuple[int, ...]:
    changed = list(sums)
    for place in places:
        changed[place] += amount
    return tuple(changed)
