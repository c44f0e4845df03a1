"""Places for containers that run already: theirs if legal, else new ones, by age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nri_resmgr.policy.balloons.choose_balloon import Search
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.memory import (
    follow_cpus,
    promise_again,
    request_of,
    size_of,
)
from nri_resmgr.policy.balloons.pins import allowed_cpus
from nri_resmgr.policy.balloons.place import (
    Placement,
    crowd_into,
    new_balloon,
    place,
    search_anyway,
)
from nri_resmgr.policy.balloons.recognise import Presence, doubt, recognise
from nri_resmgr.policy.balloons.restore import restore, restore_empty
from nri_resmgr.policy.balloons.settings import DEFAULT, RESERVED
from nri_resmgr.policy.balloons.standing import with_given, with_minimum
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import MemoryRequest
from nri_resmgr.values import NodeSet, PolicyError

State = BalloonsState


def adopt(
    specs: Sequence[ContainerSpec], old: State, ground: Ground
) -> tuple[State, dict[str, Placement]]:
    """Place running containers; never refuses, for they run anyway.

    First come those whose balloons are known, then those whose CPUs can be those of
    a balloon, then the others, each in the order given.

    Args:
        specs: Who runs, oldest first.
        old: What was known before, on this ground or on another one.
        ground: The machine and the settings.

    Returns:
        The state with all of them in it, and a placement for each, by id.
    """
    state = State.empty(ground.memory, ground.settings.available)
    state = with_given(state, ground, as_far=True)
    for spec in specs:
        state = state.put(spec, spec.present)
    state = restore({one.id: one for one in specs}, old, state, ground)
    placed = {
        key: Placement(state=state, rule=_rule_of(seat.balloon, old, state))
        for key, seat in state.seats.items()
    }
    presence = Presence.of(((one, one.present.cpus) for one in specs), ground)
    for spec in sorted(_unplaced(specs, placed), key=lambda one: doubt(one, ground)):
        if found := recognise(spec, state, ground, presence):
            placed[spec.id], state = found, found.state
    state = with_minimum(restore_empty(old, state, ground), ground, as_far=True)
    for spec in _unplaced(specs, placed):
        found = _anywhere(spec, state, ground)
        placed[spec.id], state = found, found.state
    return _with_memory(specs, old, state, ground), placed


def adopt_one(spec: ContainerSpec, state: State, ground: Ground) -> Placement:
    """Place one more container that runs already; never refuses, either.

    Args:
        spec: The container, which the ledger of *state* knows.
        state: All balloons without it.
        ground: The machine and the settings.
    """
    entries = state.ledger.entries.values()
    presence = Presence.of(((one.spec, one.last_sent.cpus) for one in entries), ground)
    found = recognise(spec, state, ground, presence)
    found = found or _anywhere(spec, state, ground)
    return msgspec.structs.replace(
        found, state=_with_memory((spec,), state, found.state, ground)
    )


def _rule_of(balloon: str, old: State, state: State) -> Rule:
    before, after = old.balloons[balloon].cpus, state.balloons[balloon].cpus
    return Rule.MOVED if before.isdisjoint(after) else Rule.KEPT


def _unplaced(
    specs: Sequence[ContainerSpec], placed: Mapping[str, Placement]
) -> list[ContainerSpec]:
    return [one for one in specs if one.id not in placed]


def _anywhere(spec: ContainerSpec, state: State, ground: Ground) -> Placement:
    """Place a container that is nowhere it may be; what runs cannot be refused."""
    try:
        return place(spec, state, ground)
    except PolicyError as error:
        why = str(error)
    search, settings = search_anyway(spec, state, ground), ground.settings
    others = (one.name for one in settings.types if one.name != RESERVED)
    kinds = dict.fromkeys((DEFAULT, search.kind.name, *others, RESERVED))
    # Somewhere there are CPUs: settings whose types may have none do not exist.
    found = next(filter(None, (_crowd(kind, search) for kind in kinds)))
    return Placement(state=found, rule=Rule.FELL_BACK, detail=why)


def _crowd(kind: str, search: Search) -> State | None:
    """Put a container into any balloon of a type, a new one if need be."""
    if found := crowd_into(kind, search):
        return found
    wanted = msgspec.structs.replace(search, kind=search.ground.settings.by_name[kind])
    made = new_balloon(wanted)
    return (
        crowd_into(kind, msgspec.structs.replace(wanted, state=made[0]))
        if made
        else None
    )


def _with_memory(
    specs: Sequence[ContainerSpec], old: State, state: State, ground: Ground
) -> State:
    """Promise memory, first to those who have some."""
    memory = state.memory
    rows = [(_zone(spec, old), spec) for spec in specs]
    for zone, spec in sorted(rows, key=lambda row: not row[0]):
        name = state.seats[spec.id].balloon
        if name and ground.type_of(state.balloons[name]).pin_memory:
            request = _request(spec, name, old, state, ground)
            memory = promise_again(request, zone, memory).ledger
            near = allowed_cpus(state.balloons[name], state)
            memory, _ = follow_cpus((spec.id,), near, memory, ground)
    return msgspec.structs.replace(state, memory=memory)


def _zone(spec: ContainerSpec, old: State) -> NodeSet:
    return old.memory.zone_of(spec.id) if spec.id in old.memory else spec.present.mems


def _request(
    spec: ContainerSpec, name: str, old: State, state: State, ground: Ground
) -> MemoryRequest:
    """Say what a container asks for: what it was granted, if it asks for the same.

    That may be less than it asks for, and is what there was room for.
    """
    balloon, by = state.balloons[name], ground.settings.memory_by
    cpus = allowed_cpus(balloon, state)
    request = request_of(spec, ground.type_of(balloon), cpus, ground)
    if spec.id not in old.memory:
        return request
    granted, before = old.memory.grants[spec.id].request, old.ledger.spec_of(spec.id)
    same = size_of(before, by) == size_of(spec, by) and (
        (before.hugepages, granted.kinds) == (spec.hugepages, request.kinds)
    )
    if not same:
        return request
    return msgspec.structs.replace(
        request, size=granted.size, hugepages=granted.hugepages
    )
