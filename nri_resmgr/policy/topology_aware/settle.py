"""After a change of the books: whose pinning is another one now."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.preferences import NO_PREFERENCES
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.pins import pin_of
from nri_resmgr.policy.topology_aware.place import Placement
from nri_resmgr.policy.topology_aware.pool_ledger import SHARING, Books
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState

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
