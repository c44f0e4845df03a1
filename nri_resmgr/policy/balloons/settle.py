"""After a change of balloons: whose pinning is another one now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.memory import follow_cpus
from nri_resmgr.policy.balloons.pins import allowed_cpus, pin_on, visible
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.values import CpuSet

State = BalloonsState


def pins_of(containers: Iterable[str], state: State, ground: Ground) -> dict[str, Pin]:
    """Return what should hold for each of *containers*, by id."""
    entries, seats = state.ledger.entries, state.seats
    pins: dict[str, Pin] = {}
    known: dict[tuple[str, bool], CpuSet] = {}  # of many in the same balloon
    for key in containers:
        seat = seats[key]
        if not seat.balloon:
            pins[key] = NO_PIN
            continue
        at = seat.balloon, seat.hidden
        if (cpus := known.get(at)) is None:
            allowed = allowed_cpus(state.balloons[seat.balloon], state)
            cpus = known[at] = visible(allowed, seat, ground)
        pins[key] = pin_on(cpus, entries[key].spec, state, ground)
    return pins


def follow(
    before: State, state: State, ground: Ground
) -> tuple[State, dict[str, None]]:
    """Let memory follow the CPUs of balloons that changed.

    Returns:
        What holds then, and whose pinning may be another one: those in a balloon
        that has other CPUs now, or another share of those in none, and those whose
        memory moved.
    """
    touched: dict[str, None] = {}
    memory = state.memory
    for balloon in _changed(before, state):
        touched |= dict.fromkeys(balloon.members)
        cpus = allowed_cpus(balloon, state)
        memory, moved = follow_cpus(balloon.members, cpus, memory, ground)
        touched |= moved
    if memory is not state.memory:
        state = state.promised(memory)
    return state, touched


def settle(
    state: State, touched: Iterable[str], ground: Ground
) -> tuple[State, tuple[PinUpdate, ...]]:
    """Find what the runtime has to be told so that what should hold, does.

    Args:
        state: What should hold now.
        touched: Ids of containers whose pinning may be another one.
        ground: The machine and the settings.

    Returns:
        The state in which that is noted as told, and the updates.
    """
    entries = state.ledger.entries
    asked = entries if state.unsettled else touched
    keys = [key for key in asked if key in entries]
    if not keys:
        return state, ()
    ledger, updates = state.ledger.settle(pins_of(keys, state, ground))
    return state.told(ledger), updates


def _changed(before: State, state: State) -> Iterator[Balloon]:
    """Go through the balloons with containers whose CPUs differ."""
    freed = before.free.bits ^ state.free.bits
    known = before.balloons.copy()  # which is asked faster than a proxy
    for name, balloon in state.balloons.items():
        if balloon.members:
            old = known.get(name)
            if balloon.reach.bits & freed or (
                old is not balloon and _differs(old, balloon)
            ):
                yield balloon


def _differs(old: Balloon | None, new: Balloon) -> bool:
    return old is None or (old.cpus, old.reach) != (new.cpus, new.reach)
