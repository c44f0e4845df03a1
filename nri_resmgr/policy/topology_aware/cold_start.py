"""Cold starts: containers that get DRAM some time after they began."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded
from nri_resmgr.policy.mems import MemoryOffer
from nri_resmgr.policy.topology_aware.promise import end_of_cold_start, is_cold
from nri_resmgr.policy.topology_aware.state import TopologyAwareState


def ends_to_come(
    containers: Iterable[str], state: TopologyAwareState
) -> tuple[Timer, ...]:
    """Return the ends of the cold starts of containers that have begun."""
    timers = []
    for key in containers:
        if _is_cold(key, state):
            spec = state.ledger.spec_of(key)
            seconds = spec.preferences.cold_start
            timers.append(Timer(ColdStartEnded(key), seconds, spec.started))
    return tuple(timers)


def warm_up(
    container: str, state: TopologyAwareState
) -> tuple[TopologyAwareState, MemoryOffer] | None:
    """Give a container the DRAM that it did without so far.

    Returns:
        What holds then, and the offer that led there; None where it is gone, or
        has such memory already.
    """
    if not _is_cold(container, state):
        return None
    offer = _warm(container, state)
    return msgspec.structs.replace(state, memory=offer.ledger), offer


def _is_cold(container: str, state: TopologyAwareState) -> bool:
    if container not in state.ledger:
        return False
    spec, tree = state.ledger.spec_of(container), state.books.tree
    if not is_cold(spec, tree.pools[state.grants[container].pool], tree):
        return False
    return _warm(container, state).zone != state.memory.zone_of(container)


def _warm(container: str, state: TopologyAwareState) -> MemoryOffer:
    pool = state.books.tree.pools[state.grants[container].pool]
    return end_of_cold_start(container, pool, state.memory)
