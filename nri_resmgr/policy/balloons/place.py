"""Containers placed in balloons, resized there, and released from them."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

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
    has_room,
    inflate,
    inflate_near,
    needed_cpus,
    vacate,
)
from nri_resmgr.policy.balloons.settings import DEFAULT, BalloonType
from nri_resmgr.policy.balloons.state import (
    PRESERVED,
    Balloon,
    FormerPlace,
    Membership,
    Slot,
)
from nri_resmgr.policy.balloons.state import (
    BalloonsState as State,
)
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec, Synchronized
from nri_resmgr.policy.ledger import gone_since, of_pods_there
from nri_resmgr.values import PolicyError, format_cpus


class BalloonPlacement(msgspec.Struct, frozen=True):
    """The decision on one container's balloon.

    Attributes:
        state: The state with the container in its balloon.
        rule: Why this balloon.
        decided: What decided on the type.
        detail: The refusal that the rule `FELL_BACK` avoided.
    """

    state: State
    rule: Rule
    decided: str = ""
    detail: str = ""


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
    """Place a container that has no balloon yet.

    Args:
        spec: The container; the ledger of *state* has it.
        state: All balloons, without it.
        context: The machine and the settings.
        old: Its place before its restart.

    Raises:
        PolicyError: No balloon can take it.
    """
    if is_preserved(spec, context.settings):
        return preserve(spec, state)
    search, decided = search_for(spec, state, context)
    if old and (found := _old_place(search, old)):
        return BalloonPlacement(_join(search, found, old), found.rule, decided)
    if found := choose_balloon(search):
        if old and _is_free_again(found, old, search):
            found = replace(found, rule=Rule.OLD_PLACE)
        return BalloonPlacement(_join(search, found, old), found.rule, decided)
    error = refusal(search)
    if context.settings.on_failure is OnFailure.SHARED and (
        shared := force_into(DEFAULT, search)
    ):
        return BalloonPlacement(
            state=shared, rule=Rule.FELL_BACK, decided=decided, detail=str(error)
        )
    raise error


def preserve(spec: ContainerSpec, state: State) -> BalloonPlacement:
    """Add a container that is not pinned and has no balloon."""
    return BalloonPlacement(
        state=state.with_member(spec.id, PRESERVED), rule=Rule.PRESERVED
    )


def move(spec: ContainerSpec, state: State, context: Context) -> BalloonPlacement:
    """Place a running container whose request has changed.

    It stays in its balloon, which grows or shrinks, if that has room; else it moves.

    Raises:
        PolicyError: No balloon has room; nothing has changed.
    """
    before = state.memberships[spec.id]
    left = state.without_member(spec.id)
    search, decided = search_for(spec, left, context)
    balloon = left.balloons[before.balloon]
    rule = (
        Rule.GROWN_IN_PLACE if spec.request > before.request else Rule.SHRUNK_IN_PLACE
    )
    # A smaller request always fits where it is.
    stays = rule is Rule.SHRUNK_IN_PLACE or fits(search, balloon)
    if stays or has_room(balloon, spec.request, left):
        membership = search.membership.within(balloon.name)
        after = left.with_member(spec.id, membership)
        after = inflate(balloon.name, after, context, partial=True)
        after = deflate(balloon.name, after, context)
        return BalloonPlacement(state=after, rule=rule, decided=decided)
    # The CPUs that it leaves are free for its new balloon.
    search = replace(search, state=vacate(balloon.name, left, context))
    if found := choose_balloon(search):
        return BalloonPlacement(
            state=_join(search, found), rule=Rule.MOVED, decided=decided
        )
    raise refusal(search)


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


def former_places_since(
    old: State, event: Synchronized
) -> MappingProxyType[Slot, FormerPlace]:
    """Return the former places that a synchronization leaves.

    Added are those of containers that have gone meanwhile, and dropped those of pods
    that have.
    """
    gone = {
        (spec.pod, spec.slot): _place_of(spec.id, old)
        for spec in gone_since(old.ledger, event)
        if old.memberships[spec.id].balloon
    }
    return MappingProxyType(of_pods_there({**old.former_places, **gone}, event))


def lose(state: State, containers: Iterable[str], context: Context) -> State:
    """Remove containers that are gone without having stopped.

    Their creation failed after it was answered, so the runtime may have discarded the
    updates in that answer: all pins have to be sent again.
    """
    left = state
    for container in containers:
        left = release(left, container, context)
    if left is state:
        return state
    return replace(left, ledger=left.ledger.forget_last_sent(), unsettled=True)


def force_into(kind: str, search: Search) -> State | None:
    """Put a container into a balloon without room for it; None if none has a CPU."""
    context = search.context
    for balloon in _roomiest_first(kind, search.state):
        membership = search.membership.within(balloon.name)
        state = search.state.with_member(search.spec.id, membership)
        state = inflate(balloon.name, state, context, partial=True)
        if state.balloons[balloon.name].cpus:
            return state
    return None


def refusal(search: Search) -> NoBalloonFits:
    """Build the refusal: what the balloons have, what is free, what would help."""
    kind, state, spec = search.kind, search.state, search.spec
    balloons = [
        f"{one.name} has {len(one.cpus)} CPUs, {format_cpus(one.load)} requested"
        for one in state.of_type(kind.name)
    ]
    helps = _helps(kind, len(balloons))
    balloons = balloons or ["there is none yet"]
    # Without a free CPU the reason is clear; with some, their number is not.
    if 0 < len(state.free) < (count := _size_of_new(search)):
        balloons.append(f"a new one needs {count} CPUs")
    return NoBalloonFits(
        title=spec.title or spec.id,
        requested=format_cpus(spec.request),
        kind=kind.name,
        free=state.free,
        balloons=tuple(balloons),
        helps=tuple(helps),
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
    state = state.with_member(search.spec.id, search.membership.within(name))
    return sum(needed_cpus(state.balloons[name], state, search.context).values())


def _helps(kind: BalloonType, count: int) -> list[str]:
    helps = ["stop containers on this node"]
    if kind.max_cpus is not None or kind.cpus:
        helps.append(f"let balloons of type {kind.name} have more CPUs")
    if kind.max_balloons is not None and count >= kind.max_balloons:
        helps.append(f"allow more balloons of type {kind.name}")
    helps.append('set "onFailure: shared" to run it in the default balloon')
    return helps


def _roomiest_first(kind: str, state: State) -> list[Balloon]:
    mine = state.of_type(kind)
    return sorted(mine, key=lambda one: (one.load - 1000 * len(one.cpus), one.index))


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


def _join(
    search: Search, found: BalloonChoice, old: FormerPlace | None = None
) -> State:
    membership = search.membership.within(found.balloon)
    state = found.state.with_member(search.spec.id, membership)
    # `BALANCED` is the rule for a balloon with room: its size stays as it is.
    if found.rule is Rule.BALANCED:
        return state
    places = (old.cpus,) if old and found.rule is Rule.OLD_PLACE else ()
    return inflate_near(found.balloon, state, search.context, places)
