"""Pins of containers: computed from grants, and compared with those last sent."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.policy.decision import PinUpdate, Resources
from nri_resmgr.policy.events import ContainerSpec, Pin, pinning
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.place import PoolPlacement
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, MilliCpus, NodeSet

State: TypeAlias = TopologyAwareState

_EXCLUSIVE: Final = CpuKind.EXCLUSIVE
_PRESERVED: Final = CpuKind.PRESERVED


def pin_of(
    spec: ContainerSpec,
    grant: Grant,
    pool_ledger: PoolLedger,
    memory: MemoryLedger,
    settings: TopologyAwareSettings,
) -> Pin:
    """Return a container's CPUs, memory nodes and CPU shares as granted."""
    # As masks: this runs for many containers each time that shared CPUs change.
    cpus, shares, mems = 0, 0, 0
    if settings.pin_cpus and grant.kind is not _PRESERVED:
        cpus, shares = _cpus_of(grant, pool_ledger), _shares_of(grant)
    pins_memory = settings.pin_memory and not spec.preferences.preserve_memory
    if pins_memory and (granted := memory.grants.get(spec.id)):
        mems = granted.zone.bits
    return pinning(cpus, mems, shares)


def shared_cpus(grant: Grant, pool_ledger: PoolLedger) -> CpuSet:
    """Return the CPUs that a container shares."""
    if grant.shares:
        return pool_ledger.free_sharable(pool_ledger.tree.pools[grant.pool])
    return pool_ledger.tree.root.reserved if grant.kind is CpuKind.RESERVED else NO_CPUS


def resources_of(grant: Grant, zone: NodeSet, pool_ledger: PoolLedger) -> Resources:
    """Return the resources that are published to a container with memory in *zone*."""
    tree = pool_ledger.tree
    seen = visible(grant.cpus | shared_cpus(grant, pool_ledger), grant, tree)
    exclusive = seen & grant.cpus
    return _resources(tree, (seen - exclusive).bits, exclusive.bits, zone.bits)


def visible(cpus: CpuSet, grant: Grant, tree: PoolTree) -> CpuSet:
    """Leave out the threads that are hidden from a container.

    Of a core with an exclusive and a shared thread, that is the shared one.
    """
    return _first_threads(tree, cpus, grant.cpus) if grant.hidden else cpus


def _cpus_of(grant: Grant, pool_ledger: PoolLedger) -> int:
    tree, cpus = pool_ledger.tree, grant.cpus.bits
    if grant.kind in SHARING:
        cpus |= tree.pools[grant.pool].sharable.bits & ~pool_ledger.taken.bits
    elif grant.kind is CpuKind.RESERVED:
        cpus |= tree.root.reserved.bits
    return visible(CpuSet(cpus), grant, tree).bits if grant.hidden else cpus


def _shares_of(grant: Grant) -> int:
    # The weight only matters on shared CPUs, where a mixed container gets that of its
    # fraction alone. One with exclusive CPUs only keeps the kubelet's weight, also if
    # CRI-O's annotation gives it shared CPUs besides.
    if grant.kind is CpuKind.CLAIMED:
        return 0  # its request need not be that of the claim
    if grant.kind is _EXCLUSIVE or (grant.cpus.bits and not grant.fraction):
        return shares_of(MilliCpus(ONE_CPU * len(grant.cpus)))
    return shares_of(grant.fraction)


# Many containers have equal resources, and texts about them are cached by object.
@lru_cache(maxsize=256)
def _resources(tree: PoolTree, shared: int, exclusive: int, zone: int) -> Resources:
    machine, nodes = tree.machine, NodeSet(zone)
    kinds = sorted(tree.kinds_in(tree.root))
    found = {kind: machine.nodes_of_kind(kind) & nodes for kind in kinds}
    return Resources(
        shared=CpuSet(shared),
        isolated=CpuSet(exclusive) & machine.isolated,
        exclusive=CpuSet(exclusive) - machine.isolated,
        mems={kind: here for kind, here in found.items() if here},
    )


@lru_cache(maxsize=256)
def _first_threads(tree: PoolTree, cpus: CpuSet, exclusive: CpuSet) -> CpuSet:
    return tree.machine.first_threads(cpus, exclusive)


def pins_of(
    containers: Iterable[str], state: State, settings: TopologyAwareSettings
) -> dict[str, Pin]:
    """Return the desired pins of *containers*, by id."""
    entries, grants, granted = state.ledger.entries, state.grants, state.memory.grants
    pins: dict[str, Pin] = {}
    # Called for hundreds of containers that share CPUs; without preferences they only
    # differ in the key below.
    known: dict[tuple[int, int, int], Pin] = {}
    usual = CpuKind.SHARED
    for key in containers:
        spec, grant = entries[key].spec, grants[key]
        if spec.preferences is not NO_PREFERENCES or grant.kind is not usual:
            pins[key] = pin_of(spec, grant, state.pool_ledger, state.memory, settings)
            continue
        same = grant.pool, grant.fraction, granted[key].zone.bits
        if (pin := known.get(same)) is None:
            pin = pin_of(spec, grant, state.pool_ledger, state.memory, settings)
            known[same] = pin
        pins[key] = pin
    return pins


def apply_placement(
    spec: ContainerSpec,
    placement: PoolPlacement,
    sent: Pin,
    left: State,
    settings: TopologyAwareSettings,
) -> tuple[State, Pin]:
    """Record a placement in the state *left*; also return the container's desired pin.

    The reply to the runtime will carry this pin; *sent* is the one that it knows.
    """
    grant, memory = placement.grant, placement.memory
    left = left.regrant(*placement.displaced) if placement.displaced else left
    pool_ledger = left.pool_ledger.add(grant)
    pin = pin_of(spec, grant, pool_ledger, memory, settings)
    return left.put(spec, grant, memory, pin.over(sent), pool_ledger), pin


def settle(
    before: PoolLedger,
    state: State,
    settings: TopologyAwareSettings,
    moved: Iterable[str] = (),
) -> tuple[State, tuple[PinUpdate, ...]]:
    """Record updates where desired pins differ from those last sent, and return them.

    Only considers containers that the change can affect: those that share CPUs of a
    pool whose shared CPUs changed since *before*, and those whose memory nodes *moved*.
    """
    entries = state.ledger.entries
    # Memory that is reserved for a pod's containers moves as well, and has no pin.
    affected = dict.fromkeys(key for key in moved if key in entries)
    if state.unsettled:
        affected = dict.fromkeys(entries)
    elif changed := before.taken.bits ^ state.pool_ledger.taken.bits:
        sharable = enumerate(state.pool_ledger.tree.sharable)
        changed_pools = {pool for pool, cpus in sharable if cpus & changed}
        for key, grant in state.grants.items():
            if grant.pool in changed_pools and grant.kind in SHARING and key in entries:
                affected[key] = None
    if not affected:
        return state, ()
    ledger, updates = state.ledger.settle(pins_of(affected, state, settings))
    return replace(state, ledger=ledger, unsettled=False), updates
