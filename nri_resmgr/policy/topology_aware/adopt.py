"""Places for containers that run already: theirs if legal, else new ones, by age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.node_view import Room
from nri_resmgr.policy.topology_aware.place import (
    Earlier,
    Placement,
    as_it_was,
    fall_back,
    place,
)
from nri_resmgr.policy.topology_aware.recover import occupied_by, recall
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.values import PolicyError

Claims: TypeAlias = Callable[[Demand, Room], Iterable[Earlier]]

# Whose CPUs are certain goes first: what containers share is what these leave. Who
# asks for nothing goes last, for that may crowd in where all is promised.
_ORDER = (CpuKind.OWN, CpuKind.MIXED, CpuKind.RESERVED, CpuKind.PRESERVED)


def adopt(
    specs: Sequence[ContainerSpec],
    known: Mapping[str, Earlier],
    state: TopologyAwareState,
    settings: TopologyAwareSettings,
) -> tuple[TopologyAwareState, dict[str, Placement]]:
    """Place running containers; never refuses, for they run anyway.

    First come those whose grants are known, then those who are where they may
    be, then the others, each in the order given.

    Args:
        specs: Who runs, oldest first.
        known: Earlier grants by container id, for this tree of pools.
        state: What is granted to others.
        settings: What the policy is told to do.

    Returns:
        The state with all of them in it, and a placement for each, by id.
    """
    demands = [demand_of(spec, settings) for spec in specs]
    occupied = occupied_by(demands)

    def by_grant(demand: Demand, _room: Room) -> Iterable[Earlier]:
        found = known.get(demand.spec.id)
        return () if found is None else (found,)

    def by_place(demand: Demand, room: Room) -> Iterable[Earlier]:
        zone = demand.spec.present.mems
        return (Earlier(one, zone) for one in recall(demand, room, occupied))

    placed: dict[str, Placement] = {}
    for claims in (by_grant, by_place):
        for demand in sorted(demands, key=_certainty):
            if demand.spec.id not in placed:
                found = _kept(demand, state.room(settings), claims)
                state = _settled(state, demand, found, placed)
    # What runs cannot be refused.
    lenient = msgspec.structs.replace(settings, on_failure=OnFailure.SHARED)
    for demand in demands:
        if demand.spec.id not in placed:
            state = _settled(state, demand, _new(demand, state.room(lenient)), placed)
    return state, placed


def _certainty(demand: Demand) -> int:
    if demand.kind in _ORDER:
        return _ORDER.index(demand.kind)
    return len(_ORDER) + (not demand.fraction)


def _kept(demand: Demand, room: Room, claims: Claims) -> Placement | None:
    for claim in claims(demand, room):
        if found := as_it_was(demand, claim, room, Rule.KEPT):
            return found
    return None


def _new(demand: Demand, room: Room) -> Placement:
    """Place a container that is nowhere it may be."""
    try:
        return place(demand, room)
    except PolicyError as error:
        # Strict wishes refuse to begin; this one has begun.
        return fall_back(demand, room, str(error))


def _settled(
    state: TopologyAwareState,
    demand: Demand,
    found: Placement | None,
    placed: dict[str, Placement],
) -> TopologyAwareState:
    if found is None:
        return state
    placed[demand.spec.id] = found
    return state.put(demand.spec, found.grant, found.memory, demand.spec.present)
