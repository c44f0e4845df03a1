"""Pins of containers, and updates for those whose pins a change of balloons affects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.memory import add_nearby_nodes
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin, pinning
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.values import CpuSet


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
        spec, bits, shares, mems = entries[key].spec, 0, 0, 0
        if context.settings.pin_cpus:
            bits, shares = cpus.bits, shares_of(spec.request)
        grant = state.memory.grants.get(key)
        if grant is not None and not spec.preferences.preserve_memory:
            mems = grant.zone.bits
        pins[key] = pinning(bits, mems, shares)
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
        state = replace(state, memory=memory)
    return state, affected


def settle(
    state: State, affected: Iterable[str], context: Context
) -> tuple[State, tuple[PinUpdate, ...]]:
    """Return the state once all updates are sent, and the updates.

    *affected* are ids of containers whose pins may differ from those last sent.
    """
    entries = state.ledger.entries
    checked = entries if state.unsettled else affected
    keys = [key for key in checked if key in entries]
    if not keys:
        return state, ()
    ledger, updates = state.ledger.settle(pins_of(keys, state, context))
    return replace(state, ledger=ledger, unsettled=False), updates


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
