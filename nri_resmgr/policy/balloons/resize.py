"""Balloons come, grow, shrink and go: from one state to the next."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.pick import give_back, take
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.sizes import need
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.values import NO_CPUS, CpuSet


def create(
    kind: BalloonType, state: BalloonsState, ground: Ground, within: str = ""
) -> tuple[BalloonsState, str]:
    """Make a balloon, without CPUs unless they are given by its type.

    Args:
        kind: Its type.
        state: All balloons; how many there may be is not looked at.
        ground: The machine and the settings.
        within: The composite balloon that it is made for.

    Returns:
        All balloons, and the name of the new one.
    """
    balloon = Balloon(type=kind.name, index=_lowest_free(kind, state), within=within)
    name = balloon.name
    if kind.cpus:
        cpus = kind.cpus[balloon.index]
        balloon = balloon.sized(cpus, ground.reach_of(kind, cpus))
        return state.with_balloons((balloon,), state.free - balloon.cpus), name
    state = state.with_balloons((balloon,))
    parts = []
    for part in _components(kind, state, ground):
        state, made = create(part, state, ground, name)
        parts.append(made)
    if parts:
        whole = msgspec.structs.replace(balloon, parts=tuple(parts))
        state = state.with_balloons((whole,))
    return state, name


def inflate(
    name: str,
    state: BalloonsState,
    ground: Ground,
    *,
    inside: CpuSet | None = None,
    as_far: bool = False,
) -> BalloonsState:
    """Let a balloon grow to what it needs; it gives nothing back.

    Args:
        name: The balloon, which is no component.
        state: All balloons.
        ground: The machine and the settings.
        inside: Where to take CPUs from alone; None for all that are free.
        as_far: Whether it may have to do with less.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    balloon = state.balloons[name]
    for key, wanted in need(balloon, state, ground).items():
        leaf = state.balloons[key]
        count = wanted - leaf.cpus.bits.bit_count()
        if count <= 0:
            continue
        free = state.free if inside is None else state.free & inside
        if as_far:
            count = min(count, len(free))
        if count > 0:
            more = take(count, leaf, free, state, ground)
            state = _with_cpus(leaf, leaf.cpus | more, state, ground)
    return state


def inflate_towards(
    name: str, state: BalloonsState, ground: Ground, places: Iterable[CpuSet]
) -> BalloonsState:
    """Let a balloon grow to what it needs, inside of the first place that suffices.

    Where none does it takes what is free, as far as that goes.
    """
    for place in places:
        try:
            return inflate(name, state, ground, inside=place)
        except BalloonShort:
            continue
    return inflate(name, state, ground, as_far=True)


def deflate(name: str, state: BalloonsState, ground: Ground) -> BalloonsState:
    """Let a balloon give back what it does not need."""
    balloon = state.balloons[name]
    for key, wanted in need(balloon, state, ground).items():
        leaf = state.balloons[key]
        if (count := len(leaf.cpus) - wanted) > 0:
            less = leaf.cpus - give_back(count, leaf, state, ground)
            state = _with_cpus(leaf, less, state, ground)
    return state


def vacate(name: str, state: BalloonsState, ground: Ground) -> BalloonsState:
    """Follow a container that left: the balloon shrinks, or goes with its last one."""
    balloon, kind = state.balloons[name], ground.type_of(state.balloons[name])
    alone = sum(1 for _ in state.of_type(kind.name))
    if not balloon.members and alone > kind.min_balloons:
        return remove(name, state)
    return deflate(name, state, ground)


def remove(name: str, state: BalloonsState) -> BalloonsState:
    """Take a balloon away, with all its components."""
    balloon = state.balloons[name]
    for part in balloon.parts:
        state = remove(part, state)
    return state.without_balloons((name,))


def place_cpus(
    name: str, cpus: CpuSet, state: BalloonsState, ground: Ground
) -> BalloonsState:
    """Give a balloon that is not composite just these CPUs; they must be free."""
    return _with_cpus(state.balloons[name], cpus, state, ground)


def _components(
    kind: BalloonType, state: BalloonsState, ground: Ground
) -> list[BalloonType]:
    parts = [ground.settings.by_name[one] for one in kind.components]
    if not kind.balance_components:
        return parts
    # The first of those with the fewest.
    return [min(parts, key=lambda part: _count(part, state, ground))]


def _count(kind: BalloonType, state: BalloonsState, ground: Ground) -> int:
    """Count the balloons of a type and of what it is composed of."""
    inside = (ground.settings.by_name[one] for one in kind.components)
    below = sum(_count(one, state, ground) for one in inside)
    return state.count(kind.name) + below


def _lowest_free(kind: BalloonType, state: BalloonsState) -> int:
    used = {one.index for one in state.balloons.values() if one.type == kind.name}
    return next(number for number in range(len(used) + 1) if number not in used)


def _with_cpus(
    leaf: Balloon, cpus: CpuSet, state: BalloonsState, ground: Ground
) -> BalloonsState:
    free = state.free | leaf.cpus
    reach = ground.reach_of(ground.type_of(leaf), cpus)
    changed = [leaf.sized(cpus, reach)]
    above = leaf.within
    known = {changed[0].name: changed[0]}
    while above:
        whole = state.balloons[above]
        parts = [known.get(one) or state.balloons[one] for one in whole.parts]
        total = CpuSet.union(part.cpus for part in parts)
        own = ground.reach_of(ground.type_of(whole), total) if total else NO_CPUS
        reach = CpuSet.union((own, *(part.reach for part in parts)))
        whole = whole.sized(total, reach)
        known[above], above = whole, whole.within
        changed.append(whole)
    return state.with_balloons(changed, free - cpus)
