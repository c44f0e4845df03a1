"""What is granted from which pool, in sums that one grant changes by little."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec

from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus

_NOTHING = MilliCpus(0)
_CPU: Final = 1000  # thousandths
# Looked up once: with enums of Python 3.11 that takes as long as making a list.
_RESERVED: Final = CpuKind.RESERVED

SHARING: Final = (CpuKind.SHARED, CpuKind.MIXED)
"""The kinds of who runs on the shared CPUs of a pool."""


class Grant(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What one container has of the CPUs.

    Attributes:
        container: Its id.
        kind: The kind of CPUs.
        pool: The id of the pool they come from.
        cpus: CPUs that it has to itself.
        fraction: Thousandths of the pool's shared, or of the reserved, CPUs.
        hidden: Whether it sees one thread of each core.
    """

    container: str
    kind: CpuKind
    pool: int
    cpus: CpuSet = NO_CPUS
    fraction: MilliCpus = _NOTHING
    hidden: bool = False

    @property
    def shares(self) -> bool:
        """Whether it runs on its pool's shared CPUs, alone or besides its own."""
        return self.kind in SHARING


class Books(msgspec.Struct, frozen=True, dict=True):
    """The sums of all grants; two that count the same grants are equal.

    Attributes:
        tree: The pools.
        taken: CPUs that somebody has to himself.
        shared: Thousandths granted from shared CPUs of each pool and of those below,
            by pool id.
        idlers: How many containers without a request share these, by pool id.
        guests: How many grants of each kind each pool has, by pool id.
        reserved: Thousandths granted from the reserved CPUs.
        sizes: Thousandths of each pool's shared CPUs, by pool id; they follow from
            `taken`.
    """

    tree: PoolTree
    taken: CpuSet
    shared: tuple[int, ...]
    idlers: tuple[int, ...]
    guests: dict[CpuKind, tuple[int, ...]]
    reserved: int
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, tree: PoolTree, grants: Iterable[Grant] = ()) -> Books:
        """Count *grants* from scratch."""
        nothing = (0,) * len(tree.pools)
        guests = dict.fromkeys(CpuKind, nothing)
        sizes = _sizes(tree, NO_CPUS)
        books = cls(tree, NO_CPUS, nothing, nothing, guests, 0, sizes)
        for grant in grants:
            books = books.add(grant)
        return books

    def add(self, grant: Grant) -> Books:
        """Count one more grant."""
        return self._changed(grant, 1)

    def remove(self, grant: Grant) -> Books:
        """Count one grant less, which must have been counted."""
        return self._changed(grant, -1)

    def free_isolated(self, pool: Pool) -> CpuSet:
        """Return the isolated CPUs of *pool* that nobody has."""
        return pool.isolated - self.taken

    def free_sharable(self, pool: Pool) -> CpuSet:
        """Return the CPUs that containers of *pool* share."""
        return pool.sharable - self.taken

    def spare(self, pool: Pool) -> int:
        """Return the thousandths that *pool* and all pools above can still grant.

        Containers without a request count for one thousandth together where nobody
        has one: a pool with containers is never emptied.
        """
        return self.spares[pool.id]

    def slack(self, pool: Pool) -> int:
        """Return what *pool* itself has beyond what is granted in its subtree."""
        return self._slacks[pool.id]

    @property
    def spare_reserved(self) -> int:
        """Thousandths of the reserved CPUs that can still be granted."""
        return _CPU * len(self.tree.root.reserved) - self.reserved

    @cached_property
    def spares(self) -> tuple[int, ...]:
        """What `spare` returns for each pool, by its id."""
        spares = self._slacks
        for here, above in self.tree.below:  # parents first
            if spares[above] < spares[here]:  # noqa: PLR1730 - min() is far slower
                spares[here] = spares[above]
        return tuple(spares)

    @property
    def _slacks(self) -> list[int]:
        shared, idlers = self.shared, self.idlers
        return [
            size - (shared[pool] or idlers[pool] > 0)
            for pool, size in enumerate(self.sizes)
        ]

    def _changed(self, grant: Grant, sign: int) -> Books:
        tree, pool, kind, fraction = self.tree, grant.pool, grant.kind, grant.fraction
        guests = self.guests.copy()
        guests[kind] = _plus(guests[kind], (pool,), sign)
        shared, idlers, reserved = self.shared, self.idlers, self.reserved
        if kind is _RESERVED:
            reserved += sign * fraction
        elif kind in SHARING and fraction:
            shared = _plus(shared, tree.pools[pool].path, sign * fraction)
        elif kind in SHARING:
            idlers = _plus(idlers, tree.pools[pool].path, sign)
        if not grant.cpus.bits:
            taken, sizes = self.taken, self.sizes
            return Books(tree, taken, shared, idlers, guests, reserved, sizes)
        taken = self.taken | grant.cpus if sign > 0 else self.taken - grant.cpus
        sizes = _sizes(tree, taken)
        return Books(tree, taken, shared, idlers, guests, reserved, sizes)


def _sizes(tree: PoolTree, taken: CpuSet) -> tuple[int, ...]:
    free = ~taken.bits
    return tuple(_CPU * (cpus & free).bit_count() for cpus in tree.sharable)


def grant_of(demand: Demand, pool: Pool, cpus: CpuSet = NO_CPUS) -> Grant:
    """Grant what is demanded from *pool*, with *cpus* for itself."""
    spec, hidden = demand.spec, bool(demand.spec.preferences.hide_hyperthreads)
    return Grant(spec.id, demand.kind, pool.id, cpus, demand.fraction, hidden)


def _plus(sums: tuple[int, ...], places: Iterable[int], amount: int) -> tuple[int, ...]:
    changed = list(sums)
    for place in places:
        changed[place] += amount
    return tuple(changed)
