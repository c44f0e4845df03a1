"""A place for a container: a type, a balloon of it, and CPUs enough."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.balloons.choose_balloon import (
    Found,
    Search,
    choose_balloon,
    fits,
)
from nri_resmgr.policy.balloons.choose_type import choose_type, is_left_alone
from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.errors import NoBalloonFits
from nri_resmgr.policy.balloons.groups import group_of
from nri_resmgr.policy.balloons.resize import (
    create,
    deflate,
    inflate,
    inflate_towards,
    vacate,
)
from nri_resmgr.policy.balloons.settings import DEFAULT, BalloonType
from nri_resmgr.policy.balloons.sizes import has_room
from nri_resmgr.policy.balloons.state import (
    LEFT_ALONE,
    Balloon,
    BalloonsState,
    Seat,
    Vacated,
)
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import PolicyError, format_cpus

State = BalloonsState


class Placement(msgspec.Struct, frozen=True):
    """Where a container is from now on.

    Attributes:
        state: All balloons, with it in one of them.
        rule: What led to the balloon.
        decided: What about the container led to its type.
        detail: The refusal that was averted, if one was.
    """

    state: State
    rule: Rule
    decided: str = ""
    detail: str = ""


def search_for(spec: ContainerSpec, state: State, ground: Ground) -> tuple[Search, str]:
    """Find out what a container looks for, and what about it says so.

    Raises:
        NoSuchType: It asks for a type that there is not.
    """
    choice = choose_type(spec, ground.settings)
    kind, wish = choice.kind, spec.preferences.hide_hyperthreads
    group = group_of(spec, kind.group_by) if kind.group_by else ""
    hidden = kind.hide_hyperthreads if wish is None else wish
    seat = Seat("", kind.name, spec.request, group, hidden)
    return Search(spec, seat, kind, state, ground), choice.decided


def search_anyway(spec: ContainerSpec, state: State, ground: Ground) -> Search:
    """Look for a balloon of its type, or where that is gone of the default type."""
    try:
        return search_for(spec, state, ground)[0]
    except PolicyError:
        wish = msgspec.structs.replace(spec.preferences, balloon=DEFAULT)
        return search_for(
            msgspec.structs.replace(spec, preferences=wish), state, ground
        )[0]


def place(
    spec: ContainerSpec, state: State, ground: Ground, old: Vacated | None = None
) -> Placement:
    """Place a container that is nowhere.

    Args:
        spec: The container, which the ledger of *state* knows.
        state: All balloons without it.
        ground: The machine and the settings.
        old: Where it was in its last life.

    Raises:
        PolicyError: There is no place for it.
    """
    if is_left_alone(spec, ground.settings):
        return leave_alone(spec, state)
    search, decided = search_for(spec, state, ground)
    if old and (found := _old_place(search, old)):
        seated = _seated(search, found, old)
        return Placement(seated, found.rule, decided)
    if found := choose_balloon(search):
        if old and _is_free_again(found, old, search):
            found = msgspec.structs.replace(found, rule=Rule.OLD_PLACE)
        seated = _seated(search, found, old)
        return Placement(seated, found.rule, decided)
    error = refusal(search)
    if ground.settings.on_failure is OnFailure.SHARED and (
        shared := crowd_into(DEFAULT, search)
    ):
        return Placement(
            state=shared, rule=Rule.FELL_BACK, decided=decided, detail=str(error)
        )
    raise error


def leave_alone(spec: ContainerSpec, state: State) -> Placement:
    """Count a container that is none of ours."""
    return Placement(state=state.sit(spec.id, LEFT_ALONE), rule=Rule.PRESERVED)


def move(spec: ContainerSpec, state: State, ground: Ground) -> Placement:
    """Give a container that runs another amount of CPUs.

    In its balloon, which grows or shrinks, where that can be; else in another one.

    Raises:
        PolicyError: Neither can be; nothing has changed.
    """
    before = state.seats[spec.id]
    left = state.get_up(spec.id)
    search, decided = search_for(spec, left, ground)
    balloon = left.balloons[before.balloon]
    rule = (
        Rule.GROWN_IN_PLACE if spec.request > before.request else Rule.SHRUNK_IN_PLACE
    )
    stays = rule is Rule.SHRUNK_IN_PLACE or fits(search, balloon)
    if stays or has_room(balloon, spec.request, left):
        seat = search.seat.within(balloon.name)
        seated = inflate(balloon.name, left.sit(spec.id, seat), ground, as_far=True)
        seated = deflate(balloon.name, seated, ground)
        return Placement(state=seated, rule=rule, decided=decided)
    search = msgspec.structs.replace(search, state=vacate(balloon.name, left, ground))
    if found := choose_balloon(search):
        return Placement(state=_seated(search, found), rule=Rule.MOVED, decided=decided)
    raise refusal(search)


def crowd_into(kind: str, search: Search) -> State | None:
    """Put a container where it does not fit, if there is any CPU for it."""
    ground = search.ground
    for balloon in _with_most_room(kind, search.state):
        seat = search.seat.within(balloon.name)
        state = search.state.sit(search.spec.id, seat)
        state = inflate(balloon.name, state, ground, as_far=True)
        if state.balloons[balloon.name].cpus:
            return state
    return None


def refusal(search: Search) -> NoBalloonFits:
    """Say why no balloon can take a container."""
    kind, state, spec = search.kind, search.state, search.spec
    balloons = tuple(
        f"{one.name} has {len(one.cpus)} CPUs for {format_cpus(one.load)}"
        for one in state.of_type(kind.name)
    )
    return NoBalloonFits(
        title=spec.title or spec.id,
        asked=format_cpus(spec.request),
        kind=kind.name,
        free=state.free,
        balloons=balloons,
        helps=tuple(_helps(kind, balloons)),
    )


def new_balloon(search: Search) -> tuple[State, str] | None:
    """Make a balloon of the wanted type without CPUs, if there may be one more."""
    kind, state = search.kind, search.state
    count = sum(1 for _ in state.of_type(kind.name))
    if kind.max_balloons is not None and count >= kind.max_balloons:
        return None
    return create(kind, state, search.ground)


def _helps(kind: BalloonType, balloons: tuple[str, ...]) -> list[str]:
    helps = ["stop containers on this node"]
    if kind.max_cpus is not None or kind.cpus:
        helps.append(f"let balloons of type {kind.name} have more CPUs")
    if kind.max_balloons is not None and len(balloons) >= kind.max_balloons:
        helps.append(f"allow more balloons of type {kind.name}")
    helps.append('set "onFailure: shared" to run it in the default balloon')
    return helps


def _with_most_room(kind: str, state: State) -> list[Balloon]:
    mine = state.of_type(kind)
    return sorted(mine, key=lambda one: (one.load - 1000 * len(one.cpus), one.index))


def _old_place(search: Search, old: Vacated) -> Found | None:
    balloon = search.state.balloons.get(old.balloon)
    if balloon is None or balloon.within or balloon.type != search.kind.name:
        return None
    request, state = search.seat.request, search.state
    if has_room(balloon, request, state) or fits(search, balloon):
        return Found(balloon.name, Rule.OLD_PLACE, state)
    return None


def _is_free_again(found: Found, old: Vacated, search: Search) -> bool:
    """Tell whether a new balloon can have the CPUs of one that went with its last."""
    kind, _, _ = old.balloon.partition("[")
    gone = found.rule is Rule.NEW_BALLOON and kind == search.kind.name
    return gone and old.cpus <= found.state.free


def _seated(search: Search, found: Found, old: Vacated | None = None) -> State:
    seat = search.seat.within(found.balloon)
    state = found.state.sit(search.spec.id, seat)
    if found.rule is Rule.BALANCED:
        return state
    places = (old.cpus,) if old and found.rule is Rule.OLD_PLACE else ()
    return inflate_towards(found.balloon, state, search.ground, places)
