"""Balloons of an earlier state, made again with the CPUs that they had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nri_resmgr.policy.balloons.choose_type import choose_type, is_left_alone
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.place import search_anyway
from nri_resmgr.policy.balloons.resize import deflate, inflate, place_cpus, remove
from nri_resmgr.policy.balloons.settings import DEFAULT
from nri_resmgr.policy.balloons.sizes import capacity, has_room
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import NO_CPUS, MilliCpus, PolicyError

State = BalloonsState


def restore(
    specs: Mapping[str, ContainerSpec], old: State, state: State, ground: Ground
) -> State:
    """Make the balloons of *old* again in which containers may stay.

    A container stays if its balloon is still of its type, and has room for it. CPUs
    that may not be used any more are left out, and CPUs that are not needed given
    back. Empty balloons come again, too, but those of a node without containers:
    others may run there by now, so it is for the caller to make them later.

    Args:
        specs: Who runs, by id; the ledger of *state* knows them.
        old: What was, on other ground maybe.
        state: Balloons that exist on this one already.
        ground: The machine and the settings.
    """
    staying = {
        name: members
        for name, one in old.balloons.items()
        if not one.within and (members := _staying(one, specs, old, ground))
    }
    for name in staying:
        again = _regrown if name in state.balloons else _again
        state = again(old.balloons[name], old, state, ground)
    for name, members in staying.items():
        if name in state.balloons:
            state = _seated(members, name, old, state, ground)
    state = _trimmed(staying, state, ground)
    if old.ledger:
        state = restore_empty(old, state, ground)
    # Only now: who had to do with less must not take what the empty ones had.
    return _grown(staying, state, ground)


def restore_empty(old: State, state: State, ground: Ground) -> State:
    """Make those without containers again, where there have to be more."""
    for name, balloon in old.balloons.items():
        if not balloon.within and name not in state.balloons:
            kind = ground.settings.by_name.get(balloon.type)
            if kind and _count(kind.name, state) < kind.min_balloons:
                state = _again(balloon, old, state, ground)
                state = _trimmed((name,), state, ground)
                state = _grown((name,), state, ground)
    return state


def _staying(
    balloon: Balloon, specs: Mapping[str, ContainerSpec], old: State, ground: Ground
) -> list[ContainerSpec]:
    mine = [specs[key] for key in balloon.members if key in specs]
    return [one for one in mine if _asks_for(one, ground) == old.seats[one.id].kind]


def _asks_for(spec: ContainerSpec, ground: Ground) -> str | None:
    """Return the type that a container asks for; None where it is to be elsewhere."""
    if is_left_alone(spec, ground.settings):
        return None
    try:
        return choose_type(spec, ground.settings).kind.name
    except PolicyError:  # its type is gone; what runs goes on in the default balloon
        return DEFAULT


def _again(balloon: Balloon, old: State, state: State, ground: Ground) -> State:
    """Make a balloon of the same name, parts and CPUs, if its type allows it."""
    kind = ground.settings.by_name.get(balloon.type)
    if kind is None or kind.cpus or not _is_like_before(balloon, old, ground):
        return state
    if kind.max_balloons is not None and _count(kind.name, state) >= kind.max_balloons:
        return state
    family = list(_family(balloon, old))
    bare = [
        msgspec.structs.replace(one, members=(), load=MilliCpus(0)) for one in family
    ]
    if any(one.name in state.balloons for one in bare):
        return state
    made = state.with_balloons(
        msgspec.structs.replace(one, cpus=NO_CPUS, reach=NO_CPUS) for one in bare
    )
    for one in bare:
        if not one.parts:
            made = place_cpus(one.name, one.cpus & made.free, made, ground)
    if balloon.cpus and not made.balloons[balloon.name].cpus:
        return state  # nothing is left of it
    return made


def _regrown(balloon: Balloon, old: State, state: State, ground: Ground) -> State:
    """Let a balloon that is there already have what it had besides."""
    name, kind = balloon.name, ground.type_of(state.balloons[balloon.name])
    if kind.cpus or not _is_like_before(balloon, old, ground):
        return state
    cpus = state.balloons[name].cpus | (balloon.cpus & state.free)
    return place_cpus(name, cpus, state, ground)


def _is_like_before(balloon: Balloon, old: State, ground: Ground) -> bool:
    kind = ground.settings.by_name.get(balloon.type)
    parts = [old.balloons[name] for name in balloon.parts]
    if kind is None or kind.cpus:
        return False
    types = tuple(one.type for one in parts)
    if kind.balance_components:
        same = len(types) == 1 and types[0] in kind.components
    else:
        same = types == kind.components
    return same and all(_is_like_before(one, old, ground) for one in parts)


def _family(balloon: Balloon, old: State) -> Iterable[Balloon]:
    yield balloon
    for name in balloon.parts:
        yield from _family(old.balloons[name], old)


def _seated(
    members: list[ContainerSpec], name: str, old: State, state: State, ground: Ground
) -> State:
    untouched = state.balloons[name].cpus == old.balloons[name].cpus
    letter = untouched and _is_within_limits(name, state, ground)
    for spec in members:
        balloon = state.balloons[name]
        as_it_was = spec.request <= old.seats[spec.id].request
        if (letter and as_it_was) or _holds(balloon, spec, state, ground):
            search = search_anyway(spec, state, ground)
            state = state.sit(
                spec.id, msgspec.structs.replace(search.seat, balloon=name)
            )
    return state


def _is_within_limits(name: str, state: State, ground: Ground) -> bool:
    whole = state.balloons[name]
    for leaf, shares in state.leaves(whole):
        if (most := ground.type_of(leaf).max_cpus) is not None and len(
            leaf.cpus
        ) > most:
            return False
        most = ground.type_of(whole).max_cpus
        if most is not None and len(leaf.cpus) > -(-most // shares):
            return False
    return True


def _holds(balloon: Balloon, spec: ContainerSpec, state: State, ground: Ground) -> bool:
    """Tell whether a container has room without more CPUs than there may be."""
    wanted = balloon.load + spec.request
    enough = 0 < capacity(balloon, state, ground) >= wanted
    return enough and has_room(balloon, spec.request, state)


def _trimmed(names: Iterable[str], state: State, ground: Ground) -> State:
    for name in names:
        if name in state.balloons:
            if not state.balloons[name].members and _is_too_many(name, state, ground):
                state = remove(name, state)
            else:
                state = deflate(name, state, ground)
    return state


def _grown(names: Iterable[str], state: State, ground: Ground) -> State:
    for name in names:
        if name in state.balloons:
            state = inflate(name, state, ground, as_far=True)
    return state


def _is_too_many(name: str, state: State, ground: Ground) -> bool:
    kind = ground.type_of(state.balloons[name])
    return _count(kind.name, state) > kind.min_balloons


def _count(kind: str, state: State) -> int:
    return sum(1 for _ in state.of_type(kind))
