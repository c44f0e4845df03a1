"""Containers go, and their balloons shrink."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

import msgspec

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.resize import vacate
from nri_resmgr.policy.balloons.state import BalloonsState, Slot, Vacated
from nri_resmgr.policy.events import Synchronized
from nri_resmgr.policy.ledger import gone_since, of_pods_there


def release(state: BalloonsState, container: str, ground: Ground) -> BalloonsState:
    """Forget a container that is here; its pod can come back to its balloon."""
    spec, name = state.ledger.spec_of(container), state.seats[container].balloon
    vacated = state.vacated
    if spec.slot and name:
        places = vacated.copy()
        places[spec.pod, spec.slot] = _place_of(container, state)
        vacated = MappingProxyType(places)
    left = state.get_up(container)
    if name:
        left = vacate(name, left, ground)
    memory = state.memory
    return BalloonsState(
        state.ledger.drop(container),
        left.balloons,
        left.seats,
        left.free,
        memory.release(container) if container in memory.grants else memory,
        vacated,
        left.unsettled,
    )


def vacated_since(
    old: BalloonsState, event: Synchronized
) -> MappingProxyType[Slot, Vacated]:
    """Return the places that pods may come back to, when it is told anew who runs."""
    gone = {
        (spec.pod, spec.slot): _place_of(spec.id, old)
        for spec in gone_since(old.ledger, event)
        if old.seats[spec.id].balloon
    }
    return MappingProxyType(of_pods_there({**old.vacated, **gone}, event))


def lose(
    state: BalloonsState, containers: Iterable[str], ground: Ground
) -> BalloonsState:
    """Release containers that are gone without having stopped.

    Their creation must have failed after it was answered, and with it the updates
    in that answer may be lost: nothing told before can be trusted.
    """
    left = state
    for container in containers:
        left = release(left, container, ground)
    if left is state:
        return state
    return msgspec.structs.replace(
        left, ledger=left.ledger.forget_last_sent(), unsettled=True
    )


def _place_of(container: str, state: BalloonsState) -> Vacated:
    name = state.seats[container].balloon
    return Vacated(name, state.balloons[name].cpus)
