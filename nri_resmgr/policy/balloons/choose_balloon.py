"""Which balloon of its type a container goes into, or whether it gets a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.resize import create
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.sizes import (
    capacity,
    has_room,
    need,
    spare,
)
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState, Seat
from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.events import ContainerSpec

Way: TypeAlias = Callable[["Search"], "Found | None"]


class Found(msgspec.Struct, frozen=True):
    """A balloon for a container.

    Attributes:
        balloon: Its name.
        rule: What led to it.
        state: All balloons, a new one among them.
    """

    balloon: str
    rule: Rule
    state: BalloonsState


class Search(msgspec.Struct, frozen=True):
    """One container that looks for a balloon.

    Attributes:
        spec: The container.
        seat: What it would count for; its balloon is not known yet.
        kind: Its type.
        state: All balloons, without it.
        ground: The machine and the settings.
    """

    spec: ContainerSpec
    seat: Seat
    kind: BalloonType
    state: BalloonsState
    ground: Ground


def choose_balloon(search: Search) -> Found | None:
    """Go through the ways to find a balloon; the first that finds one counts.

    Source:
        nri-plugins, balloons, ``fillchain.go``, ``allocateBalloonOfDef``.
    """
    for way in _ways(search.kind):
        if found := way(search):
            return found
    return None


def fits(search: Search, balloon: Balloon) -> bool:
    """Tell whether a balloon, as large as it can become, has room."""
    return _room(search, balloon) >= search.seat.request


def _ways(kind: BalloonType) -> Iterator[Way]:
    if kind.group_by:
        yield _same_group
    if not kind.spread_pods:
        yield _same_pod
    if kind.per_namespace:
        yield _same_namespace
        yield _new
    if kind.prefer_new:
        yield from (_new, _balanced, _inflated)
    else:
        yield from (_balanced, _inflated, _new)


def _same_group(search: Search) -> Found | None:
    seats, group = search.state.seats, search.seat.group
    if not group:
        return None
    mine = [
        one
        for one in _own(search)
        if group in [seats[key].group for key in one.members]
    ]
    return _beside(search, mine, Rule.SAME_GROUP)


def _same_pod(search: Search) -> Found | None:
    state = search.state
    pod = state.ledger.in_pod(search.spec.pod) if search.spec.pod else ()
    names = {state.seats[one].balloon for one in pod if one in state.seats}
    if not names:
        return None
    mine = [one for one in _own(search) if one.name in names]
    return _beside(search, mine, Rule.SAME_POD)


def _same_namespace(search: Search) -> Found | None:
    entries, namespace = search.state.ledger.entries, search.spec.namespace
    mine = []
    for one in _own(search):
        for key in one.members:
            if entries[key].spec.namespace == namespace:
                mine.append(one)
                break
    return _beside(search, mine, Rule.SAME_NAMESPACE) if mine else None


def _beside(search: Search, mine: Iterable[Balloon], rule: Rule) -> Found | None:
    """Take the one with the most room, of equal ones that with fewer containers."""
    request, best, most = search.seat.request, None, (0, 0)
    for one in mine:
        rank = _room(search, one), -len(one.members)
        if rank[0] >= request and (best is None or rank > most):
            best, most = one, rank
    return None if best is None else Found(best.name, rule, search.state)


def _balanced(search: Search) -> Found | None:
    request, state = search.seat.request, search.state
    best, most = None, (0, 0)
    for one in _own(search):
        # Many have room, and few more of it than the best so far.
        rank = spare(one, state), -len(one.members)
        if (best is None or rank > most) and has_room(one, request, state):
            best, most = one, rank
    return None if best is None else Found(best.name, Rule.BALANCED, state)


def _inflated(search: Search) -> Found | None:
    return _beside(search, _own(search), Rule.INFLATED)


def _new(search: Search) -> Found | None:
    """Take an empty balloon, or make one."""
    count = 0
    for one in _own(search):
        count += 1
        if not one.members and fits(search, one):
            return Found(one.name, Rule.EMPTY_BALLOON, search.state)
    kind, ground = search.kind, search.ground
    full = kind.max_balloons is not None and count >= kind.max_balloons
    if full or not search.state.free:
        return None
    state, name = create(kind, search.state, ground)
    found = Search(search.spec, search.seat, kind, state, ground)
    least = sum(need(state.balloons[name], state, ground).values())
    if least > len(state.free) or not fits(found, state.balloons[name]):
        return None
    return Found(name, Rule.NEW_BALLOON, state)


def _own(search: Search) -> Iterator[Balloon]:
    return search.state.of_type(search.kind.name)


def _room(search: Search, balloon: Balloon) -> int:
    """Return what a balloon, as large as it can become, has left; -1 without CPUs."""
    most = 0
    if search.kind.max_cpus != 0:
        most = capacity(balloon, search.state, search.ground)
    return most - balloon.load if most > 0 else -1
