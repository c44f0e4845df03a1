"""Containers placed in balloons, resized there, and released from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.balloons.choose_balloon import (
    BalloonChoice,
    Search,
    choose_balloon,
    fits,
)
from nri_resmgr.policy.balloons.choose_type import (
    choose_type,
    group_of,
    is_preserved,
)
from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.errors import NoBalloonFits
from nri_resmgr.policy.balloons.lifecycle import (
    create,
    deflate,
    free_capacity,
    grow,
    has_room,
    inflate,
    inflate_near,
    lacking,
    needed_cpus,
    vacate,
)
from nri_resmgr.policy.balloons.make_room import emptied, gives_way, may_have_cpus
from nri_resmgr.policy.balloons.settings import DEFAULT, RESERVED
from nri_resmgr.policy.balloons.state import (
    PRESERVED,
    Balloon,
    FormerPlace,
    Membership,
)
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import PolicyError, format_cpus
from nri_resmgr.values.counts import count_text

Find: TypeAlias = Callable[[Search], BalloonChoice | None]


class BalloonPlacement(msgspec.Struct, frozen=True):
    """The decision on one container's balloon.

    Attributes:
        decided: What decided on the type.
        detail: The refusal that the rule `FELL_BACK` avoided.
        displaced: Other containers that make way, by id; their states are earlier ones.
    """

    state: State
    rule: Rule
    decided: str = ""
    detail: str = ""
    displaced: Mapping[str, BalloonPlacement] = {}


def search_for(
    spec: ContainerSpec, state: State, context: Context
) -> tuple[Search, str]:
    """Return what a container requests, and what decided on its type.

    Raises:
        NoSuchType: Its annotation names an unknown type.
    """
    choice = choose_type(spec, context.settings)
    kind, requested = choice.kind, spec.preferences.hide_hyperthreads
    group = group_of(spec, kind.group_by) if kind.group_by else ""
    hidden = kind.hide_hyperthreads if requested is None else requested
    membership = Membership("", kind.name, spec.request, group, hidden)
    return Search(spec, membership, kind, state, context), choice.decided


def search_or_default(spec: ContainerSpec, state: State, context: Context) -> Search:
    """Search for the requested type, or for the default one if that is gone."""
    try:
        return search_for(spec, state, context)[0]
    except PolicyError:
        default = replace(spec.preferences, balloon=DEFAULT)
        spec = replace(spec, preferences=default)
        return search_for(spec, state, context)[0]


def place(
    spec: ContainerSpec, state: State, context: Context, old: FormerPlace | None = None
) -> BalloonPlacement:
    """Place a container that is in no balloon yet; *old* is its place before a restart.

    Raises:
        PolicyError: No balloon can take it.
    """
    if is_preserved(spec, context.settings):
        return preserve(spec, state)
    search, decided = search_for(spec, state, context)
    find = partial(_find, old)
    if found := find(search):
        return BalloonPlacement(join(search, found, old), found.rule, decided)
    if placed := make_room(search, find, partial(join, old=old)):
        return replace(placed, decided=decided)
    error = refusal(search)
    if fallen := _fall_back(search):
        return BalloonPlacement(fallen, Rule.FELL_BACK, decided, str(error))
    raise error


def _find(old: FormerPlace | None, search: Search) -> BalloonChoice | None:
    if old is None:
        return choose_balloon(search)
    if found := _old_place(search, old):
        return found
    found = choose_balloon(search)
    if found and _is_free_again(found, old, search):
        return replace(found, rule=Rule.OLD_PLACE)
    return found


def _fall_back(search: Search) -> State | None:
    """Put a container where there is no room for it, if the settings allow it.

    One without a request needs none beside the containers of the reserved CPUs.
    """
    context, found = search.context, None
    if context.settings.on_failure is OnFailure.SHARED:
        found = force_into(DEFAULT, search)
    if found or not gives_way(search.spec):
        return found
    # Limits hold: a type without any CPU is one for no container.
    if not may_have_cpus(search.kind, context):
        return None
    return force_into(RESERVED, search, grows=False)


def make_room(
    search: Search,
    find: Find,
    enter: Callable[[Search, BalloonChoice], State],
    but: str = "",
) -> BalloonPlacement | None:
    """Place a container where only others without a CPU request are in the way.

    They are placed anew, as if they had come later. As few balloons as possible are
    emptied, but never the one named *but*. None where that does not help.
    """
    if not search.membership.request:
        return None
    steps = tuple(emptied(search.state, search.context, but))
    # First whether it helps at all: most refusals have other reasons.
    if not steps or not find(replace(search, state=steps[-1].state)):
        return None
    for step in steps:
        bare = replace(search, state=step.state)
        if found := find(bare):
            after = enter(bare, found)
            with suppress(PolicyError):
                return _put_back(step.containers, search, after, found.rule)
    return None


def _put_back(
    containers: Iterable[str], before: Search, state: State, rule: Rule
) -> BalloonPlacement:
    """Place containers anew that made way, in the order in which they came.

    Raises:
        PolicyError: There are no CPUs for one of them, not even reserved ones.
    """
    moved, context = set(containers), before.context
    why = f"{before.spec.title or before.spec.id} needs its CPUs"
    displaced: dict[str, BalloonPlacement] = {}
    for key in [key for key in state.ledger.entries if key in moved]:
        spec, old = state.ledger.spec_of(key), _place_of(key, before.state)
        found = place(spec, state, context, old)
        state = found.state
        if _place_of(key, state) != old:
            fell_back = state.memberships[key].fell_back
            moved_by = Rule.FELL_BACK if fell_back else Rule.MOVED
            displaced[key] = replace(found, rule=moved_by, detail=why)
    return BalloonPlacement(state, rule, displaced=displaced)


def place_at(
    place: FormerPlace, spec: ContainerSpec, state: State, context: Context
) -> BalloonPlacement | None:
    """Place a container in a balloon of its type that has room; None if it has not.

    Raises:
        NoSuchType: Its annotation names an unknown type.
    """
    search, decided = search_for(spec, state, context)
    if found := _old_place(search, place):
        return BalloonPlacement(join(search, found, place), found.rule, decided)
    return None


def preserve(spec: ContainerSpec, state: State) -> BalloonPlacement:
    """Add a container that is not pinned and has no balloon."""
    return BalloonPlacement(state.with_member(spec.id, PRESERVED), Rule.PRESERVED)


def move(spec: ContainerSpec, state: State, context: Context) -> BalloonPlacement:
    """Place a running container whose request has changed.

    It stays in its balloon, which grows or shrinks, if that has room; else it moves. If
    its type does not exist any more, it is one of the default type.

    Raises:
        PolicyError: No balloon has room; nothing has changed.
    """
    before = state.memberships[spec.id]
    left = state.without_member(spec.id)
    try:
        search, decided = search_for(spec, left, context)
    except PolicyError:
        search, decided = search_or_default(spec, left, context), ""
    balloon = left.balloons[before.balloon]
    vacated = replace(search, state=vacate(balloon.name, left, context))
    fell_back = before.fell_back
    if fell_back and (found := choose_balloon(vacated)):
        if found.balloon != balloon.name:
            return BalloonPlacement(join(vacated, found), Rule.MOVED, decided)
        fell_back = False
    grows = spec.request > before.request
    # A smaller request always fits where it is.
    stays = not grows or fits(search, balloon)
    if stays or has_room(balloon, spec.request, left):
        rule = Rule.GROWN_IN_PLACE if grows else Rule.SHRUNK_IN_PLACE
        stay = BalloonChoice(balloon.name, rule, left)
        after = _resized(search, stay, fell_back=fell_back)
        if fell_back:  # it still has less than it asks for
            why = str(refusal(vacated))
            return BalloonPlacement(after, Rule.FELL_BACK, decided, why)
        return BalloonPlacement(after, rule, decided)
    # The CPUs that it leaves are free for its new balloon.
    if found := choose_balloon(vacated):
        return BalloonPlacement(join(vacated, found), Rule.MOVED, decided)
    placed = None
    if not fell_back:
        grow = partial(_grow, balloon.name)
        placed = make_room(search, grow, _resized, but=balloon.name)
    if placed := placed or make_room(vacated, choose_balloon, join):
        in_place = placed.rule is Rule.GROWN_IN_PLACE
        rule = placed.rule if in_place else Rule.MOVED
        return replace(placed, rule=rule, decided=decided)
    raise refusal(vacated)


def _grow(name: str, search: Search) -> BalloonChoice | None:
    """Choose the balloon that a container is in, if that can grow enough for it."""
    if not fits(search, search.state.balloons[name]):
        return None
    return BalloonChoice(name, Rule.GROWN_IN_PLACE, search.state)


def _resized(search: Search, stay: BalloonChoice, *, fell_back: bool = False) -> State:
    """Add a container to the balloon that it was in, which grows or shrinks."""
    name, context = stay.balloon, search.context
    membership = replace(search.membership, balloon=name, fell_back=fell_back)
    after = stay.state.with_member(search.spec.id, membership)
    return deflate(name, inflate(name, after, context, partial=True), context)


def improve(
    state: State, context: Context, besides: str = ""
) -> tuple[State, dict[str, BalloonPlacement]]:
    """Use free CPUs for those that have less than they should.

    First, those that fell back move to balloons with room, in the order in which they
    came. Then balloons get what they lack, such as after parts of the machine went.
    Each can leave room to others, so this is repeated until nothing changes; *besides*
    is the id of a container that stays, as the decision is about it.

    Returns:
        The new state, without changes of memory, and the placements of those that
        moved, by id.
    """
    found: dict[str, BalloonPlacement] = {}
    while True:
        while improved := _round(state, context, besides):
            state, moved = improved
            found |= moved
        before, state = state, grow(lacking(state, context), state, context)
        if state is before:
            return state, found


def _round(
    state: State, context: Context, besides: str
) -> tuple[State, dict[str, BalloonPlacement]] | None:
    waiting = {key for key, one in state.memberships.items() if one.fell_back}
    waiting.discard(besides)
    found: dict[str, BalloonPlacement] = {}
    # Hundreds can have fallen back: those with equal memberships that name the same
    # type fit, or do not.
    hopeless: set[tuple[Membership, str]] = set()
    keys = [key for key in state.ledger.entries if key in waiting]
    # Those without a request last, as they would make way for the others.
    for key in sorted(keys, key=lambda key: not state.memberships[key].request):
        spec = state.ledger.spec_of(key)
        like = state.memberships[key], spec.preferences.balloon
        if like in hopeless:
            continue
        if better := _improved(spec, state, context):
            found |= {key: better, **better.displaced}
            state = better.state
            hopeless.clear()
        else:
            hopeless.add(like)
    return (state, found) if found else None


def _improved(
    spec: ContainerSpec, state: State, context: Context
) -> BalloonPlacement | None:
    name = state.memberships[spec.id].balloon
    left = vacate(name, state.without_member(spec.id), context)
    try:
        search, decided = search_for(spec, left, context)
    except PolicyError:
        return None  # the type that its annotation names is gone
    balloon = state.balloons[name]
    # Those that it shared the CPUs with are gone, or ask for less.
    same = balloon.type == search.kind.name and has_room(balloon, 0, state)
    if same and free_capacity(balloon, state) >= 0:
        membership = replace(state.memberships[spec.id], fell_back=False)
        stays = state.without_member(spec.id).with_member(spec.id, membership)
        return BalloonPlacement(stays, Rule.NOW_FITS, decided)
    if choice := choose_balloon(search):
        return BalloonPlacement(join(search, choice), Rule.NOW_FITS, decided)
    if placed := make_room(search, choose_balloon, join):
        return replace(placed, rule=Rule.NOW_FITS, decided=decided)
    return None


def release(state: State, container: str, context: Context) -> State:
    """Remove a container; its place is kept for a restart in the same pod."""
    spec, name = state.ledger.spec_of(container), state.memberships[container].balloon
    former_places = state.former_places
    # A container without a slot has no successor that could return.
    if spec.slot and name:
        places = former_places.copy()
        places[spec.pod, spec.slot] = _place_of(container, state)
        former_places = MappingProxyType(places)
    left = state.without_member(container)
    if name:
        left = vacate(name, left, context)
    memory = state.memory
    return replace(
        left,
        ledger=state.ledger.drop(container),
        memory=memory.release(container) if container in memory.grants else memory,
        former_places=former_places,
    )


def former_place_of(container: str, state: State) -> FormerPlace | None:
    """Return the place to which a successor returns; None outside of balloons."""
    return _place_of(container, state) if state.memberships[container].balloon else None


def force_into(kind: str, search: Search, *, grows: bool = True) -> State | None:
    """Put a container into a balloon without room for it; None if none has a CPU.

    The balloon *grows* as far as it needs to, if CPUs are free.
    """
    context, runs = search.context, search.spec.present.cpus
    mine = search.state.of_type(kind)

    def rank(one: Balloon) -> tuple[bool, int, int]:
        # The one with the most room first, but a running container stays where it is.
        stays = bool(one.cpus) and one.cpus <= runs
        return not stays, one.load - 1000 * len(one.cpus), one.index

    for balloon in sorted(mine, key=rank):
        membership = replace(search.membership, balloon=balloon.name, fell_back=True)
        state = search.state.with_member(search.spec.id, membership)
        if grows:
            state = inflate(balloon.name, state, context, partial=True)
        if state.balloons[balloon.name].cpus:
            return state
    return None


def refusal(search: Search) -> NoBalloonFits:
    """Build the refusal: what the balloons have, and what is free."""
    kind, state, spec = search.kind, search.state, search.spec
    balloons = [
        f"{one.name} has {count_text(len(one.cpus), 'CPU')}, "
        f"{format_cpus(one.load)} requested"
        for one in state.of_type(kind.name)
    ]
    balloons = balloons or ["there is none yet"]
    # Without a free CPU the reason is clear; with some, their number is not.
    if 0 < len(state.free) < (count := _size_of_new(search)):
        balloons.append(f"a new one needs {count_text(count, 'CPU')}")
    return NoBalloonFits(
        title=spec.title or spec.id,
        requested=format_cpus(spec.request),
        kind=kind.name,
        free=state.free,
        balloons=tuple(balloons),
    )


def new_balloon(search: Search) -> tuple[State, str] | None:
    """Create a balloon of the type without CPUs; None at the maximum number."""
    kind, state = search.kind, search.state
    count = state.count_whole(kind.name)
    if kind.max_balloons is not None and count >= kind.max_balloons:
        return None
    return create(kind, state, search.context)


def _place_of(container: str, state: State) -> FormerPlace:
    name = state.memberships[container].balloon
    return FormerPlace(name, state.balloons[name].cpus)


def _size_of_new(search: Search) -> int:
    """Return the number of CPUs of a new balloon for a container; 0 at the maximum."""
    if search.kind.cpus or not (made := new_balloon(search)):
        return 0
    state, name = made
    state = state.with_member(search.spec.id, replace(search.membership, balloon=name))
    return sum(needed_cpus(state.balloons[name], state, search.context).values())


def _old_place(search: Search, old: FormerPlace) -> BalloonChoice | None:
    balloon = search.state.balloons.get(old.balloon)
    if balloon is None or balloon.within or balloon.type != search.kind.name:
        return None
    request, state = search.membership.request, search.state
    if has_room(balloon, request, state) or fits(search, balloon):
        return BalloonChoice(balloon.name, Rule.OLD_PLACE, state)
    return None


def _is_free_again(found: BalloonChoice, old: FormerPlace, search: Search) -> bool:
    """Return whether a new balloon can have the CPUs of the removed former one."""
    kind, _, _ = old.balloon.partition("[")
    gone = found.rule is Rule.NEW_BALLOON and kind == search.kind.name
    return gone and old.cpus <= found.state.free


def join(search: Search, found: BalloonChoice, old: FormerPlace | None = None) -> State:
    """Add a container to the balloon that was found for it, which grows if needed."""
    membership = replace(search.membership, balloon=found.balloon)
    state = found.state.with_member(search.spec.id, membership)
    # `BALANCED` is the rule for a balloon with room: its size stays as it is.
    if found.rule is Rule.BALANCED:
        return state
    places = (old.cpus,) if old and found.rule is Rule.OLD_PLACE else ()
    return inflate_near(found.balloon, state, search.context, places)
