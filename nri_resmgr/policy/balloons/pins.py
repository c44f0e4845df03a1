"""Pins of containers, and updates for those whose pins a change of balloons affects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.memory import add_nearby_nodes
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, pinning
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.values import CpuSet


def pin_of(spec: ContainerSpec, state: State, context: Context) -> Pin:
    """Return the desired CPUs, memory nodes and CPU shares of a container."""
    membership = state.memberships[spec.id]
    if not membership.balloon:
        return NO_PIN
    allowed = state.allowed_cpus(state.balloons[membership.balloon])
    return _pin_on(context.visible(allowed, membership), spec, state, context)


def pins_of(
    containers: Iterable[str], state: State, context: Context
) -> dict[str, Pin]:
    """Return the desired pin of each of *containers*, by id."""
    entries, memberships = state.ledger.entries, state.memberships
    pins: dict[str, Pin] = {}
    # Computed once per balloon: a balloon often has many containers.
    known: dict[tuple[str, bool], CpuSet] = {}
    for key in containers:
        membership = memberships[key]
        if not membership.balloon:
            pins[key] = NO_PIN
            continue
        at = membership.balloon, membership.hidden
        if (cpus := known.get(at)) is None:
            allowed = state.allowed_cpus(state.balloons[membership.balloon])
            cpus = known[at] = context.visible(allowed, membership)
        pins[key] = _pin_on(cpus, entries[key].spec, state, context)
    return pins


def extend_memory(
    before: State, state: State, context: Context
) -> tuple[State, dict[str, None]]:
    """Add memory nodes for containers whose balloons have other CPUs now.

    Returns:
        The new state, and the ids of all containers whose pins may differ: those of
        balloons whose own or shared idle CPUs changed, and those whose memory moved.
    """
    affected: dict[str, None] = {}
    memory = state.memory
    for balloon in _changed(before, state):
        affected |= dict.fromkeys(balloon.members)
        cpus = state.allowed_cpus(balloon)
        memory, moved = add_nearby_nodes(balloon.members, cpus, memory, context)
        affected |= moved
    if memory is not state.memory:
        state = state.with_memory(memory)
    return state, affected


def settle(
    state: State, affected: Iterable[str], context: Context
) -> tuple[State, tuple[PinUpdate, ...]]:
    """Return the updates that the runtime needs, and the state once they are sent.

    Args:
        state: The desired state.
        affected: Ids of containers whose pins may differ from those last sent.
        context: The machine and the settings.
    """
    entries = state.ledger.entries
    checked = entries if state.unsettled else affected
    keys = [key for key in checked if key in entries]
    if not keys:
        return state, ()
    ledger, updates = state.ledger.settle(pins_of(keys, state, context))
    return state.with_updates_sent(ledger), updates


def _pin_on(cpus: CpuSet, spec: ContainerSpec, state: State, context: Context) -> Pin:
    bits, shares, mems = 0, 0, 0
    if context.settings.pin_cpus:
        bits, shares = cpus.bits, shares_of(spec.request)
    grant = state.memory.grants.get(spec.id)
    if grant is not None and not spec.preferences.preserve_memory:
        mems = grant.zone.bits
    return pinning(bits, mems, shares)


def _changed(before: State, state: State) -> Iterator[Balloon]:
    """Yield the balloons with containers whose CPUs differ."""
    freed = before.free.bits ^ state.free.bits
    known = before.balloons.copy()  # a dict is faster to look up than a proxy
    for name, balloon in state.balloons.items():
        if balloon.members:
            old = known.get(name)
            # Its own CPUs, or the idle ones that it shares.
            if balloon.reach.bits & freed or (
                old is not balloon and _differs(old, balloon)
            ):
                yield balloon


def _differs(old: Balloon | None, new: Balloon) -> bool:
    return old is None or (old.cpus, old.reach) != (new.cpus, new.reach)
