"""Balloons created, resized and removed; how many CPUs they need and can have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.errors import BalloonShort
from nri_resmgr.policy.balloons.pick import give_back, take
from nri_resmgr.policy.balloons.settings import RESERVED, BalloonType
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet

# Types with the strictest preference choose their CPUs first.
_ORDER: Final = tuple(CpuPriority)


def needed_cpus(balloon: Balloon, state: State, context: Context) -> dict[str, int]:
    """Return how many CPUs each leaf of a balloon should have, by name.

    That is enough for the requests of its containers, at least one if it has
    containers, and within the minimum and maximum of its type.
    """
    kind, used = context.type_of(balloon), balloon.is_used
    if not balloon.parts:
        return {balloon.name: _need(balloon, context)}
    if kind.max_cpus == 0:  # a limit of the whole, however few containers there are
        return {leaf.name: 0 for leaf, _ in state.leaves(balloon)}
    # Components carry equal shares of the load, each rounded up to whole CPUs.
    milli = _clamped(balloon.load, kind)
    return {
        leaf.name: _leaf_need(
            -(-milli // share), context.type_of(leaf), leaf, used=used
        )
        for leaf, share in state.leaves(balloon)
    }


def has_room(balloon: Balloon, request: int, state: State) -> bool:
    """Return whether a request fits without another CPU; one of 0 always does."""
    # Without a CPU not even a container that requests nothing can run.
    for leaf, _ in state.leaves(balloon):
        if not leaf.cpus:
            return False
    return not request or free_capacity(balloon, state) >= request


def free_capacity(balloon: Balloon, state: State) -> int:
    """Return the unrequested part of a balloon's CPUs, in thousandths of a CPU."""
    if not balloon.parts:
        return ONE_CPU * balloon.cpus.bits.bit_count() - balloon.load
    sizes = (len(leaf.cpus) * share for leaf, share in state.leaves(balloon))
    return ONE_CPU * min(sizes) - balloon.load


def capacity(balloon: Balloon, state: State, context: Context) -> int:
    """Return a balloon's capacity with all free CPUs, in thousandths of a CPU."""
    kind, free = context.type_of(balloon), state.free.bits.bit_count()
    if not balloon.parts:
        return ONE_CPU * most_cpus(balloon, kind, free)
    leaves = [
        (leaf, share, most_cpus(leaf, context.type_of(leaf), free))
        for leaf, share in state.leaves(balloon)
    ]
    most = min(ONE_CPU * size * share for _, share, size in leaves)
    # Growing components share the free CPUs: step down until these suffice for all.
    while most > 0 and _missing(most, leaves) > free:
        most -= ONE_CPU
    # Without the minimum, which says nothing about what can be had.
    return _clamped(most, kind, low=False)


def most_cpus(balloon: Balloon, kind: BalloonType, free: int) -> int:
    """Return the size that a balloon without parts can reach."""
    if kind.cpus:
        return len(kind.cpus[balloon.index])
    most = balloon.cpus.bits.bit_count() + free
    return most if kind.max_cpus is None else min(kind.max_cpus, most)


def create(
    kind: BalloonType, state: State, context: Context, within: str = ""
) -> tuple[State, str]:
    """Create a balloon, without CPUs unless its type lists them; also return its name.

    The maximum number of its type is not checked. It may be *within* a composite one.
    """
    used = {one.index for one in state.balloons.values() if one.type == kind.name}
    # The lowest, as CPUs and homes of a type are configured by this number.
    index = next(number for number in range(len(used) + 1) if number not in used)
    balloon = Balloon(type=kind.name, index=index, within=within)
    name = balloon.name
    if kind.cpus:
        cpus = kind.cpus[balloon.index]
        balloon = replace(balloon, cpus=cpus, reach=context.reach_of(kind, cpus))
        return state.with_balloons((balloon,), state.free - balloon.cpus), name
    state = state.with_balloons((balloon,))
    parts = []
    for part in _components(kind, state, context):
        state, made = create(part, state, context, name)
        parts.append(made)
    if parts:
        state = state.with_balloons((replace(balloon, parts=tuple(parts)),))
    return state, name


def inflate(
    name: str,
    state: State,
    context: Context,
    *,
    inside: CpuSet | None = None,
    partial: bool = False,
) -> State:
    """Add CPUs to a balloon, no component, up to its need; it gives none back.

    Only CPUs *inside* of some are taken, if given. A *partial* call takes fewer where
    there are not enough.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    balloon = state.balloons[name]
    for key, wanted in needed_cpus(balloon, state, context).items():
        leaf = state.balloons[key]
        count = wanted - leaf.cpus.bits.bit_count()
        if count <= 0:
            continue
        free = state.free if inside is None else state.free & inside
        if partial:
            count = min(count, len(free))
        if count > 0:
            more = take(count, leaf, free, state, context)
            state = with_cpus(leaf, leaf.cpus | more, state, context)
    return state


def inflate_near(
    name: str, state: State, context: Context, places: Iterable[CpuSet]
) -> State:
    """Add CPUs to a balloon up to its need, from the first place that suffices.

    If none does, take as many of the free CPUs as there are.
    """
    for place in places:
        try:
            return inflate(name, state, context, inside=place)
        except BalloonShort:
            continue
    return inflate(name, state, context, partial=True)


def lacking(state: State, context: Context) -> list[str]:
    """Return the balloons, no components, that free CPUs may be for; by name."""
    if not state.free:
        return []
    return [
        one.name
        for one in state.balloons.values()
        if not one.within
        # Components are compared one by one: one can lack what another has in excess.
        if one.parts or one.cpus.bits.bit_count() < _need(one, context)
    ]


def grow(names: Iterable[str], state: State, context: Context) -> State:
    """Give those of some balloons that are there the CPUs that they lack.

    They get as many as there are.
    """
    for name in names:
        if name in state.balloons:
            state = inflate(name, state, context, partial=True)
    return state


def deflate(name: str, state: State, context: Context) -> State:
    """Release the CPUs that a balloon does not need."""
    balloon = state.balloons[name]
    for key, wanted in needed_cpus(balloon, state, context).items():
        leaf = state.balloons[key]
        if (count := len(leaf.cpus) - wanted) > 0:
            less = leaf.cpus - give_back(count, leaf, state, context)
            state = with_cpus(leaf, less, state, context)
    return state


def vacate(name: str, state: State, context: Context) -> State:
    """Shrink a balloon that a container left, or remove it after its last one."""
    balloon, kind = state.balloons[name], context.type_of(state.balloons[name])
    count = state.count_whole(kind.name)
    if not balloon.is_used and count > kind.min_balloons:
        return remove(name, state)
    return deflate(name, state, context)


def remove(name: str, state: State) -> State:
    """Remove a balloon with all its components."""
    balloon = state.balloons[name]
    for part in balloon.parts:
        state = remove(part, state)
    return state.without_balloon(name)


def create_given(state: State, context: Context, *, partial: bool = False) -> State:
    """Create the balloons whose types list their CPUs, and the reserved ones.

    A *partial* call lets reserved balloons have fewer CPUs than they need.

    Raises:
        BalloonShort: There are too few CPUs.
    """
    for kind in context.settings.types:
        for _ in kind.cpus:
            state, _ = create(kind, state, context)
    if reserved := context.settings.reserved:
        kind = context.settings.by_name[RESERVED]
        for _ in range(kind.min_balloons):
            state, name = create(kind, state, context)
            # From the reserved CPUs first; a larger minimum takes others as well.
            state = inflate(name, state, context, inside=reserved, partial=True)
            state = inflate(name, state, context, partial=partial)
    return state


def create_minimum(state: State, context: Context, *, partial: bool = False) -> State:
    """Create balloons up to the minimum number of each type.

    A *partial* call lets them have fewer CPUs than they need.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    for kind in sorted(
        context.settings.types, key=lambda one: _ORDER.index(one.priority)
    ):
        missing = kind.min_balloons - state.count_whole(kind.name)
        for _ in range(missing):
            state, name = create(kind, state, context)
            state = inflate(name, state, context, partial=partial)
    return state


def _missing(milli: int, leaves: list[tuple[Balloon, int, int]]) -> int:
    wanted = ((-(-milli // (share * ONE_CPU)), leaf) for leaf, share, _ in leaves)
    return sum(max(count - len(leaf.cpus), 0) for count, leaf in wanted)


def _clamped(milli: int, kind: BalloonType, *, low: bool = True) -> int:
    if kind.max_cpus is not None:
        milli = min(milli, ONE_CPU * kind.max_cpus)
    return max(milli, ONE_CPU * kind.min_cpus) if low else milli


def _need(balloon: Balloon, context: Context) -> int:
    """Return how many CPUs a balloon without parts should have."""
    kind = context.type_of(balloon)
    return _leaf_need(balloon.load, kind, balloon, used=balloon.is_used)


def _leaf_need(milli: int, kind: BalloonType, leaf: Balloon, *, used: bool) -> int:
    if kind.cpus:
        return len(kind.cpus[leaf.index])
    # A container that requests nothing still needs a CPU to run on.
    count = -(-milli // ONE_CPU) or int(used)
    if kind.max_cpus is not None:
        count = min(count, kind.max_cpus)
    return max(count, kind.min_cpus)


def _components(kind: BalloonType, state: State, context: Context) -> list[BalloonType]:
    parts = [context.settings.by_name[one] for one in kind.components]
    if not kind.balance_components:
        return parts
    # The first type of those with the fewest balloons.
    return [min(parts, key=lambda part: _count(part, state, context))]


def _count(kind: BalloonType, state: State, context: Context) -> int:
    """Count the balloons of a type and of its components' types."""
    inside = (context.settings.by_name[one] for one in kind.components)
    below = sum(_count(one, state, context) for one in inside)
    return state.count(kind.name) + below


def with_cpus(leaf: Balloon, cpus: CpuSet, state: State, context: Context) -> State:
    """Replace the CPUs of a balloon without parts; the new ones must be free."""
    # CPUs and reach of composite balloons follow from their components.
    free = state.free | leaf.cpus
    reach = context.reach_of(context.type_of(leaf), cpus)
    changed = [replace(leaf, cpus=cpus, reach=reach)]
    above = leaf.within
    known = {changed[0].name: changed[0]}
    while above:
        whole = state.balloons[above]
        parts = [known.get(one) or state.balloons[one] for one in whole.parts]
        total = CpuSet.union(part.cpus for part in parts)
        direct = context.reach_of(context.type_of(whole), total) if total else NO_CPUS
        reach = CpuSet.union((direct, *(part.reach for part in parts)))
        whole = replace(whole, cpus=total, reach=reach)
        known[above], above = whole, whole.within
        changed.append(whole)
    return state.with_balloons(changed, free - cpus)
