"""Balloons of an earlier state, restored with the CPUs that they had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from msgspec.structs import replace

from nri_resmgr.policy.balloons.choose_type import choose_type, is_preserved
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import (
    capacity,
    deflate,
    grow,
    has_room,
    remove,
    with_cpus,
)
from nri_resmgr.policy.balloons.place import search_or_default
from nri_resmgr.policy.balloons.recognise import Occupancy
from nri_resmgr.policy.balloons.settings import DEFAULT
from nri_resmgr.policy.balloons.state import Balloon, ReservedRoom, Slot
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.reported import Reported, owns_cpus
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus, PolicyError


def restore(
    specs: Mapping[str, ContainerSpec],
    rooms: Mapping[Slot, ReservedRoom],
    old: State,
    state: State,
    context: Context,
) -> State:
    """Restore the balloons of *old* in which containers may stay.

    A container stays if its balloon is still of its type and has room for it; so do
    the reserved *rooms* of present pods. CPUs that are not available any more are left
    out; `trimmed` releases those that are not needed. None are added: others may run on
    free ones, see `grow`.

    *old* may be of another machine or other settings; *state* may have new balloons.
    """
    staying = {
        name: members
        for name, one in old.balloons.items()
        if not one.within and (members := _staying(one, specs, old, context))
    }
    rooms = {
        slot: room
        for slot, room in rooms.items()
        if _asks_for(room.spec, context) == old.balloons[room.balloon].type
    }
    for room in rooms.values():
        staying.setdefault(room.balloon, [])
    for name in staying:
        revived = _regrown if name in state.balloons else _recreated
        state = revived(_as_plain(old.balloons[name], context), old, state, context)
    for name, members in staying.items():
        if name in state.balloons:
            state = _rejoined(members, name, old, state, context)
    for slot, room in rooms.items():
        found = state.balloons.get(room.balloon)
        if found and _holds(found, room.spec, state, context):
            state = state.with_room(slot, room)
    return state


def in_standard_order(old: State) -> State:
    """Return a state with its balloons by type and number.

    The order in which a checkpoint lists them says nothing.
    """
    ordered = sorted(old.balloons.values(), key=lambda one: (one.type, one.index))
    balloons = MappingProxyType({one.name: one for one in ordered})
    return replace(old, balloons=balloons)


def recent_part(
    old: State, specs: Sequence[ContainerSpec], occupancy: Occupancy, context: Context
) -> State:
    """Leave out containers that moved since, and the balloons in which no other stayed.

    A checkpoint can be older than what runs: others may run on these CPUs by now, and
    a balloon may have other ones of those that its containers run on.
    """
    entries, outdated = old.ledger.entries, dict[str, str]()
    reported = Reported.of(specs)
    stayed = {
        one.id
        for one in specs
        if one.id in entries and reported.is_known(one.present, entries[one.id])
    }
    # Records may lag behind exclusive ones.
    idle = occupancy.contested - reported.owned
    later = {
        one.present.cpus for one in specs if one.id not in stayed and owns_cpus(one)
    }
    for spec in specs:
        if spec.id not in entries:
            continue
        stays = spec.id in stayed or _runs_beside_idle(spec, old, context)
        stays = stays and not _has_lost(spec, old, later)
        if not (stays and _has_own(spec, old, occupancy.own, idle)):
            outdated[spec.id] = old.memberships[spec.id].balloon
    left = {one.id for one in specs} - outdated.keys()
    alone = [key for key in entries if key in left and _is_alone(key, old, left)]
    outdated |= {key: old.memberships[key].balloon for key in alone}
    if not outdated:
        return old
    state = old
    for key in outdated:
        state = state.without_member(key)
    for name in dict.fromkeys(outdated.values()):
        if name in state.balloons and not state.balloons[name].members:
            for slot, room in state.reserved_rooms.items():
                if room.balloon == name:
                    state = state.without_room(slot)
            state = remove(name, state)
    return replace(
        state,
        ledger=state.ledger.drop(*outdated),
        memory=state.memory.release(*outdated),
    )


def _has_lost(spec: ContainerSpec, old: State, later: Iterable[CpuSet]) -> bool:
    """Return whether CPUs of a balloon are exclusive to containers that came later.

    One with just the CPUs of this container may be in the same balloon.
    """
    balloon = old.balloons.get(old.memberships[spec.id].balloon)
    return balloon is not None and any(
        not cpus.isdisjoint(balloon.cpus) and cpus != spec.present.cpus
        for cpus in later
    )


def _is_alone(container: str, old: State, left: AbstractSet[str]) -> bool:
    """Return whether one that fell back is the last container *left* in its balloon.

    It may have got a balloon of its own type since, on the CPUs that others left.
    """
    membership = old.memberships[container]
    if not membership.fell_back:
        return False
    members = old.balloons[membership.balloon].members
    return len(members) > 1 and left.isdisjoint({*members} - {container})


def _has_own(spec: ContainerSpec, old: State, own: CpuSet, idle: CpuSet) -> bool:
    """Return whether a balloon that shares idle CPUs has its own present ones.

    Args:
        spec: A container in it.
        old: The state with the balloon.
        own: CPUs that are some balloon's own, and on which no other one's run.
        idle: CPUs on which containers of several balloons run.
    """
    balloon = old.balloons.get(old.memberships[spec.id].balloon)
    if balloon is None or not balloon.reach:
        return True
    return spec.present.cpus & own <= balloon.cpus and idle.isdisjoint(balloon.cpus)


def _runs_beside_idle(spec: ContainerSpec, old: State, context: Context) -> bool:
    """Return whether a container runs in its balloon and on other idle CPUs.

    Those change with other balloons. Its own ones do with what it asks for.
    """
    membership = old.memberships[spec.id]
    if not Reported.is_known_memory(spec.present, old.ledger.entries[spec.id]):
        return False
    balloon = old.balloons.get(membership.balloon)
    if balloon is None or not balloon.reach or spec.request != membership.request:
        return False
    own = context.visible(balloon.cpus, membership)
    most = context.visible(balloon.cpus | balloon.reach, membership)
    return own <= spec.present.cpus <= most


def trimmed(name: str, state: State, context: Context, own: CpuSet = NO_CPUS) -> State:
    """Release CPUs that a restored balloon does not need, those that are *own* last."""
    whole = state.balloons[name]
    most = context.type_of(whole).min_balloons
    if not whole.is_used and state.count_whole(whole.type) > most:
        return remove(name, state)
    return deflate(name, state, context, own)


def restore_empty(old: State, state: State, context: Context) -> State:
    """Restore balloons without containers up to the minimum number of their types."""
    for name, balloon in old.balloons.items():
        if not balloon.within and name not in state.balloons:
            kind = context.settings.by_name.get(balloon.type)
            if kind and state.count_whole(kind.name) < kind.min_balloons:
                state = _recreated(balloon, old, state, context)
                if name in state.balloons:
                    state = trimmed(name, state, context)
                state = grow((name,), state, context)
    return state


def _staying(
    balloon: Balloon, specs: Mapping[str, ContainerSpec], old: State, context: Context
) -> list[ContainerSpec]:
    mine = [specs[key] for key in balloon.members if key in specs]
    # The order in which a checkpoint lists them says nothing.
    mine.sort(key=lambda one: (one.created, one.id))
    return [
        one for one in mine if _asks_for(one, context) == old.memberships[one.id].kind
    ]


def _asks_for(spec: ContainerSpec, context: Context) -> str | None:
    """Return the type that a container asks for; None if it is not pinned."""
    if is_preserved(spec, context.settings):
        return None
    try:
        return choose_type(spec, context.settings).kind.name
    except PolicyError:  # no such type any more: it stays, in the default balloon
        return DEFAULT


def _recreated(balloon: Balloon, old: State, state: State, context: Context) -> State:
    """Restore a balloon with its name, parts and CPUs, if its type allows it."""
    kind = context.settings.by_name.get(balloon.type)
    if kind is None or kind.cpus or not _has_same_parts(balloon, old, context):
        return state
    if (
        kind.max_balloons is not None
        and state.count_whole(kind.name) >= kind.max_balloons
    ):
        return state
    # Members are added later: those that do not fit any more are placed elsewhere.
    family = list(_family(balloon, old))
    emptied = [replace(one, members=(), rooms=(), load=MilliCpus(0)) for one in family]
    if any(one.name in state.balloons for one in emptied):
        return state
    made = state.with_balloons(
        replace(one, cpus=NO_CPUS, reach=NO_CPUS) for one in emptied
    )
    for one in emptied:
        if not one.parts:
            leaf = made.balloons[one.name]
            made = with_cpus(leaf, one.cpus & made.free, made, context)
    if balloon.cpus and not made.balloons[balloon.name].cpus:
        return state  # none of its CPUs is free
    return made


def _regrown(balloon: Balloon, old: State, state: State, context: Context) -> State:
    """Add its former CPUs to a balloon that was already created."""
    made = state.balloons[balloon.name]
    if context.type_of(made).cpus or not _has_same_parts(balloon, old, context):
        return state
    return with_cpus(made, made.cpus | (balloon.cpus & state.free), state, context)


def _as_plain(balloon: Balloon, context: Context) -> Balloon:
    """Return a balloon without parts if its type has none any more, with its CPUs."""
    kind = context.settings.by_name.get(balloon.type)
    is_plain = kind is not None and not kind.components
    return replace(balloon, parts=()) if balloon.parts and is_plain else balloon


def _has_same_parts(balloon: Balloon, old: State, context: Context) -> bool:
    kind = context.settings.by_name.get(balloon.type)
    parts = [old.balloons[name] for name in balloon.parts]
    if kind is None or kind.cpus:
        return False
    types = tuple(one.type for one in parts)
    if kind.balance_components:
        same = len(types) == 1 and types[0] in kind.components
    else:
        same = types == kind.components
    return same and all(_has_same_parts(one, old, context) for one in parts)


def _family(balloon: Balloon, old: State) -> Iterable[Balloon]:
    yield balloon
    for name in balloon.parts:
        yield from _family(old.balloons[name], old)


def _rejoined(
    members: list[ContainerSpec], name: str, old: State, state: State, context: Context
) -> State:
    untouched = state.balloons[name].cpus == old.balloons[name].cpus
    # Those that ask for more may leave no room to others.
    no_more = all(one.request <= old.memberships[one.id].request for one in members)
    as_before = untouched and no_more and _is_within_limits(name, state, context)
    for spec in members:
        balloon = state.balloons[name]
        if as_before or _holds(balloon, spec, state, context):
            search = search_or_default(spec, state, context)
            fell_back = old.memberships[spec.id].fell_back
            membership = replace(search.membership, balloon=name, fell_back=fell_back)
            state = state.with_member(spec.id, membership)
    return state


def _is_within_limits(name: str, state: State, context: Context) -> bool:
    whole = state.balloons[name]
    for leaf, shares in state.leaves(whole):
        most = context.type_of(leaf).max_cpus
        if most is not None and len(leaf.cpus) > most:
            return False
        most = context.type_of(whole).max_cpus
        if most is not None and len(leaf.cpus) > -(-most // shares):
            return False
    return True


def _holds(
    balloon: Balloon, spec: ContainerSpec, state: State, context: Context
) -> bool:
    """Return whether a container fits now and within the limits of the type."""
    wanted = balloon.load + spec.request
    enough = 0 < capacity(balloon, state, context) >= wanted
    return enough and has_room(balloon, spec.request, state)
