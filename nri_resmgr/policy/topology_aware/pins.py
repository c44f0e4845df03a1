"""What holds for a container: grants in, pinning out."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.policy.topology_aware.books import Books, Grant
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.values import NO_CPUS, NO_NODES, CpuSet, MilliCpus, NodeSet

_CPU: Final = 1000  # thousandths


def pin_of(
    spec: ContainerSpec,
    grant: Grant,
    books: Books,
    memory: MemoryLedger,
    settings: TopologyAwareSettings,
) -> Pin:
    """Say where a container may run and have its memory, and its weight there."""
    cpus, shares, mems = NO_CPUS, 0, NO_NODES
    if settings.pin_cpus and grant.kind is not CpuKind.PRESERVED:
        cpus, shares = _cpus_of(grant, books), _shares_of(grant)
    pins_memory = settings.pin_memory and not spec.preferences.preserve_memory
    if pins_memory and spec.id in memory:
        mems = memory.zone_of(spec.id)
    return _interned(cpus, mems, shares)


def shared_cpus(grant: Grant, books: Books) -> CpuSet:
    """Return the CPUs that a container shares with others."""
    match grant.kind:
        case CpuKind.SHARED | CpuKind.MIXED:
            return books.free_sharable(books.tree.pools[grant.pool])
        case CpuKind.RESERVED:
            return books.tree.root.reserved
        case _:
            return NO_CPUS


def visible(cpus: CpuSet, grant: Grant, tree: PoolTree) -> CpuSet:
    """Leave out the threads that a container is not to see."""
    return _first_threads(tree, cpus) if grant.hidden else cpus


def _cpus_of(grant: Grant, books: Books) -> CpuSet:
    return visible(grant.cpus | shared_cpus(grant, books), grant, books.tree)


def _shares_of(grant: Grant) -> int:
    # A container on CPUs of its own competes with nobody; the weight counts on
    # the shared ones, where a mixed container is to have its fraction's only.
    milli = grant.fraction
    if grant.kind is CpuKind.OWN:
        milli = MilliCpus(_CPU * len(grant.cpus))
    return shares_of(milli)


@lru_cache(maxsize=1024)
def _interned(cpus: CpuSet, mems: NodeSet, shares: int) -> Pin:
    # Containers that share then share the object, and comparing them is cheap.
    return Pin(cpus, mems, shares)


@lru_cache(maxsize=256)
def _first_threads(tree: PoolTree, cpus: CpuSet) -> CpuSet:
    cores = (core.cpus & cpus for core in tree.machine.cores)
    return CpuSet.from_iterable(mine.first for mine in cores if mine)
