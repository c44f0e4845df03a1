"""Whole pods: room that is reserved in balloons until containers are created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.balloons.choose_balloon import choose_balloon
from nri_resmgr.policy.balloons.choose_type import choose_type, is_preserved
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import vacate
from nri_resmgr.policy.balloons.make_room import gives_way
from nri_resmgr.policy.balloons.place import (
    BalloonPlacement,
    join,
    make_room,
    place_at,
    refusal,
    search_for,
)
from nri_resmgr.policy.balloons.settings import RESERVED
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.balloons.state import FormerPlace, ReservedRoom, Slot
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Synchronized
from nri_resmgr.policy.ledger import of_pods_there
from nri_resmgr.values import MilliCpus, PolicyError


class ReservedRooms(msgspec.Struct, frozen=True):
    """A state with more reserved rooms, and the containers that make way for them."""

    state: State
    displaced: Mapping[str, BalloonPlacement] = {}


def rooms_for(
    pod: str, expected: Iterable[ContainerSpec], context: Context
) -> list[ContainerSpec]:
    """Return the containers of a pod that room is reserved for, with ids.

    Left out are those that are not pinned, and those of types that spread pods over
    balloons or serve system containers.

    Raises:
        NoSuchType: An annotation names an unknown type.
    """
    return [
        replace(spec, id=f"{pod}/{spec.name}", pod=pod)
        for spec in expected
        if is_placed(spec, context)
        and not choose_type(spec, context.settings).kind.spread_pods
    ]


def is_placed(spec: ContainerSpec, context: Context) -> bool:
    """Return whether a container is in a balloon, and not in a reserved one."""
    if is_preserved(spec, context.settings):
        return False
    return choose_type(spec, context.settings).kind.name != RESERVED


def reserve_rooms(
    specs: Sequence[ContainerSpec], state: State, context: Context
) -> ReservedRooms:
    """Reserve room for containers of a pod, in one balloon for those of one type.

    Those of a type that all ask for no CPU need no room: they can fall back.

    Raises:
        PolicyError: No balloon has room for those of a type together.
    """
    by_type: dict[str, list[ContainerSpec]] = {}
    for spec in specs:
        kind = choose_type(spec, context.settings).kind.name
        by_type.setdefault(kind, []).append(spec)
    found = ReservedRooms(state)
    for mine in by_type.values():
        found = _reserve_together(mine, found, context)
    return found


def take_room(
    spec: ContainerSpec, slot: Slot, state: State, context: Context
) -> BalloonPlacement | None:
    """Place a new container in its reserved room; None if it asks for another one."""
    room = state.reserved_rooms[slot]
    if room.spec.request != spec.request or is_preserved(spec, context.settings):
        return None
    left = state.without_room(slot)
    place = FormerPlace(room.balloon, left.balloons[room.balloon].cpus)
    return place_at(place, spec, left, context)


def return_rooms(slots: Iterable[Slot], state: State, context: Context) -> State:
    """Drop reserved rooms; their balloons shrink, or go."""
    for slot in slots:
        name = state.reserved_rooms[slot].balloon
        state = vacate(name, state.without_room(slot), context)
    return state


def close_pod(pod: str, state: State, context: Context) -> State:
    """Drop what is reserved for a pod, and the names that it announced."""
    mine = [slot for slot in state.reserved_rooms if slot[0] == pod]
    left = return_rooms(mine, state, context)
    others = {key: names for key, names in left.announced.items() if key != pod}
    return replace(left, announced=others)


def rooms_since(state: State, event: Synchronized) -> dict[Slot, ReservedRoom]:
    """Return the rooms of pods that are there, whose containers are not."""
    named = {(one.pod, one.name) for one in event.specs}
    rooms = of_pods_there(state.reserved_rooms, event)
    return {slot: room for slot, room in rooms.items() if slot not in named}


def reserve_again(
    rooms: Mapping[Slot, ReservedRoom], state: State, context: Context
) -> ReservedRooms:
    """Reserve rooms that were not restored, where pods still fit."""
    by_pod: dict[str, list[ContainerSpec]] = {}
    for slot, room in rooms.items():
        if slot not in state.reserved_rooms:
            by_pod.setdefault(slot[0], []).append(room.spec)
    found = ReservedRooms(state)
    for specs in by_pod.values():
        with suppress(PolicyError):
            more = reserve_rooms(specs, found.state, context)
            displaced = {**found.displaced, **more.displaced}
            found = ReservedRooms(more.state, displaced)
    return found


def _reserve_together(
    specs: Sequence[ContainerSpec], before: ReservedRooms, context: Context
) -> ReservedRooms:
    """Find a balloon as for one container that asks for the sum, and reserve it."""
    first, request = specs[0], MilliCpus(sum(one.request for one in specs))
    title = first.title.rpartition("/")[0] or first.pod
    whole = replace(first, id=first.pod, title=title, request=request)
    state, displaced = before.state, before.displaced
    search, _ = search_for(whole, state.put(whole, NO_PIN), context)
    if found := choose_balloon(search):
        joined = join(search, found)
    elif placed := make_room(search, choose_balloon, join):
        joined, displaced = placed.state, {**displaced, **placed.displaced}
    elif all(map(gives_way, specs)):
        return before
    else:
        raise refusal(search)
    name = joined.memberships[whole.id].balloon
    state = replace(joined.without_member(whole.id), ledger=state.ledger)
    for spec in specs:
        room = ReservedRoom(spec, name)
        state = state.with_room((spec.pod, spec.name), room)
    return ReservedRooms(state, displaced)
