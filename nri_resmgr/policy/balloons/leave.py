"""Containers go, and their balloons shrink."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

import attrs

from nri_resmgr.policy.balloons.ground import Ground
from nri_resmgr.policy.balloons.resize import vacate
from nri_resmgr.policy.balloons.state import BalloonsState, Vacated


def release(state: BalloonsState, container: str, ground: Ground) -> BalloonsState:
    """Forget a container that is here; its pod can come back to its balloon."""
    spec, name = state.ledger.spec_of(container), state.seats[container].balloon
    vacated = state.vacated
    if spec.slot and name:
        place = Vacated(name, state.balloons[name].cpus)
        vacated = MappingProxyType({**vacated, (spec.pod, spec.slot): place})
    left = state.get_up(container)
    if name:
        left = vacate(name, left, ground)
    memory = state.memory
    return attrs.evolve(
        left,
        ledger=state.ledger.drop(container),
        memory=memory.release(container) if container in memory else memory,
        vacated=vacated,
    )


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
    return attrs.evolve(left, ledger=left.ledger.forget_told(), unsettled=True)
