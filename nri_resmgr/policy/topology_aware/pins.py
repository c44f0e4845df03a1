"""What holds for a container: grants in, pinning out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.decision import PinUpdate, Resources
from nri_resmgr.policy.events import ContainerSpec, Pin, pinning
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.place import Placement
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Books, Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus, NodeSet

_CPU: Final = 1000  # thousandths
_OWN: Final = CpuKind.OWN
_PRESERVED: Final = CpuKind.PRESERVED


def pin_of(
    spec: ContainerSpec,
    grant: Grant,
    books: Books,
    memory: MemoryLedger,
    settings: TopologyAwareSettings,
) -> Pin:
    """Say where a container may run and have its memory, and its weight there."""
    # As masks: this is asked of many, each time that CPUs change hands.
    cpus, shares, mems = 0, 0, 0
    if settings.pin_cpus and grant.kind is not _PRESERVED:
        cpus, shares = _cpus_of(grant, books), _shares_of(grant)
    pins_memory = settings.pin_memory and not spec.preferences.preserve_memory
    if pins_memory and (promised := memory.grants.get(spec.id)):
        mems = promised.zone.bits
    return pinning(cpus, mems, shares)


def shared_cpus(grant: Grant, books: Books) -> CpuSet:
    """Return the CPUs that a container shares with others."""
    if grant.shares:
        return books.free_sharable(books.tree.pools[grant.pool])
    return books.tree.root.reserved if grant.kind is CpuKind.RESERVED else NO_CPUS


def resources_of(grant: Grant, zone: NodeSet, books: Books) -> Resources:
    """Say what a container has, for its own eyes.

    Args:
        grant: What it has of the CPUs.
        zone: Its memory nodes.
        books: The sums of all grants.
    """
    tree = books.tree
    shared = visible(shared_cpus(grant, books), grant, tree)
    own = visible(grant.cpus, grant, tree)
    return _resources(tree, shared.bits, own.bits, zone.bits)


def visible(cpus: CpuSet, grant: Grant, tree: PoolTree) -> CpuSet:
    """Leave out the threads that a container is not to see."""
    return _first_threads(tree, cpus) if grant.hidden else cpus


def _cpus_of(grant: Grant, books: Books) -> int:
    tree, cpus = books.tree, grant.cpus.bits
    if grant.kind in SHARING:
        cpus |= tree.pools[grant.pool].sharable.bits & ~books.taken.bits
    elif grant.kind is CpuKind.RESERVED:
        cpus |= tree.root.reserved.bits
    return _first_threads(tree, CpuSet(cpus)).bits if grant.hidden else cpus


def _shares_of(grant: Grant) -> int:
    # A container on CPUs of its own competes with nobody; the weight counts on
    # the shared ones, where a mixed container is to have its fraction's only. One
    # that asks for these besides, with CRI-O's annotation, keeps the kubelet's there.
    if grant.kind is _OWN or (grant.cpus.bits and not grant.fraction):
        return shares_of(MilliCpus(_CPU * len(grant.cpus)))
    return shares_of(grant.fraction)


# Many share the same, and the texts about it are remembered by the object.
@lru_cache(maxsize=256)
def _resources(tree: PoolTree, shared: int, own: int, zone: int) -> Resources:
    machine, nodes = tree.machine, NodeSet(zone)
    kinds = sorted(tree.kinds_in(tree.root))
    found = {kind: machine.nodes_of_kind(kind) & nodes for kind in kinds}
    return Resources(
        shared=CpuSet(shared),
        isolated=CpuSet(own) & machine.isolated,
        exclusive=CpuSet(own) - machine.isolated,
        mems={kind: here for kind, here in found.items() if here},
    )


@lru_cache(maxsize=256)
def _first_threads(tree: PoolTree, cpus: CpuSet) -> CpuSet:
    cores = (core.cpus & cpus for core in tree.machine.cores)
    return CpuSet.from_iterable(mine.first for mine in cores if mine)


State = TopologyAwareState


def pins_of(
    containers: Iterable[str], state: State, settings: TopologyAwareSettings
) -> dict[str, Pin]:
    """Return what should hold for each of *containers*, by id."""
    entries, grants, promised = state.ledger.entries, state.grants, state.memory.grants
    pins: dict[str, Pin] = {}
    # Hundreds that share CPUs are asked for at once; those with no wishes of their
    # own differ in little.
    known: dict[tuple[int, int, int], Pin] = {}
    usual = CpuKind.SHARED
    for key in containers:
        spec, grant = entries[key].spec, grants[key]
        if spec.preferences is not NO_PREFERENCES or grant.kind is not usual:
            pins[key] = pin_of(spec, grant, state.books, state.memory, settings)
            continue
        alike = grant.pool, grant.fraction, promised[key].zone.bits
        if (pin := known.get(alike)) is None:
            pin = pin_of(spec, grant, state.books, state.memory, settings)
            known[alike] = pin
        pins[key] = pin
    return pins


def seat(
    spec: ContainerSpec,
    placement: Placement,
    told: Pin,
    left: State,
    settings: TopologyAwareSettings,
) -> tuple[State, Pin]:
    """Place a container, whom the reply will tell its pinning.

    Args:
        spec: The container.
        placement: Where it goes.
        told: What the runtime knows of its pinning.
        left: What holds without it.
        settings: What the policy is told to do.

    Returns:
        What holds with it, and what should hold for it.
    """
    grant, memory = placement.grant, placement.memory
    books = left.books.add(grant)
    pin = pin_of(spec, grant, books, memory, settings)
    return left.put(spec, grant, memory, pin.over(told), books), pin


def settle(
    before: Books,
    state: State,
    settings: TopologyAwareSettings,
    moved: Iterable[str] = (),
) -> tuple[State, tuple[PinUpdate, ...]]:
    """Find what the runtime has to be told so that what should hold, does.

    Looks only at containers that the change can touch: those who share CPUs of a
    pool that lost or won some, and those whose memory moved.

    Args:
        before: The books before the change.
        state: What should hold now.
        settings: What the policy is told to do.
        moved: Ids of containers whose memory nodes changed.

    Returns:
        The state in which that is noted as told, and the updates.
    """
    touched = dict.fromkeys(moved)
    if state.unsettled:
        touched = dict.fromkeys(state.ledger.entries)
    elif changed := before.taken.bits ^ state.books.taken.bits:
        sharable = enumerate(state.books.tree.sharable)
        lost = {pool for pool, cpus in sharable if cpus & changed}
        entries = state.ledger.entries
        for key, grant in state.grants.items():
            if grant.pool in lost and grant.kind in SHARING and key in entries:
                touched[key] = None
    if not touched:
        return state, ()
    ledger, updates = state.ledger.settle(pins_of(touched, state, settings))
    return state.told(ledger), updates
