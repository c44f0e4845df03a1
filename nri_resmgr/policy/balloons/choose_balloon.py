"""The balloon of its type that a container joins, or a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import (
    capacity,
    create,
    free_capacity,
    has_room,
    needed_cpus,
)
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.state import Balloon, Membership
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule

Strategy: TypeAlias = Callable[["Search"], "BalloonChoice | None"]


class BalloonChoice(msgspec.Struct, frozen=True):
    """The balloon chosen for a container, and all balloons, with this one if new."""

    balloon: str
    rule: Rule
    state: State


class Search(msgspec.Struct, frozen=True):
    """The search for a container's balloon, in a state without the container.

    The balloon of the membership is still empty; *kind* is the requested type.
    """

    spec: ContainerSpec
    membership: Membership
    kind: BalloonType
    state: State
    context: Context


def choose_balloon(search: Search) -> BalloonChoice | None:
    """Choose a balloon by the first strategy of the type that finds one.

    Source:
        nri-plugins, balloons, ``fillchain.go``, ``allocateBalloonOfDef``.
    """
    for strategy in _strategies(search.kind):
        if found := strategy(search):
            return found
    return None


def fits(search: Search, balloon: Balloon) -> bool:
    """Return whether a balloon has room once it has grown as far as possible."""
    return _max_free(search, balloon) >= search.membership.request


def _strategies(kind: BalloonType) -> Iterator[Strategy]:
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


def _same_group(search: Search) -> BalloonChoice | None:
    memberships, group = search.state.memberships, search.membership.group
    if not group:
        return None
    mine = [
        one
        for one in _of_type(search)
        if group in [memberships[key].group for key in one.members]
    ]
    return _roomiest(search, mine, Rule.SAME_GROUP)


def _same_pod(search: Search) -> BalloonChoice | None:
    state = search.state
    pod = state.ledger.in_pod(search.spec.pod) if search.spec.pod else ()
    names = {state.memberships[one].balloon for one in pod if one in state.memberships}
    if not names:
        return None
    mine = [one for one in _of_type(search) if one.name in names]
    return _roomiest(search, mine, Rule.SAME_POD)


def _same_namespace(search: Search) -> BalloonChoice | None:
    entries, namespace = search.state.ledger.entries, search.spec.namespace
    mine = []
    for one in _of_type(search):
        for key in one.members:
            if entries[key].spec.namespace == namespace:
                mine.append(one)
                break
    return _roomiest(search, mine, Rule.SAME_NAMESPACE) if mine else None


def _roomiest(
    search: Search, mine: Iterable[Balloon], rule: Rule
) -> BalloonChoice | None:
    """Choose the balloon with the most room, then with the fewest containers."""
    request, best, most = search.membership.request, None, (0, 0)
    for one in mine:
        rank = _max_free(search, one), -len(one.members)
        if rank[0] >= request and (best is None or rank > most):
            best, most = one, rank
    return None if best is None else BalloonChoice(best.name, rule, search.state)


def _balanced(search: Search) -> BalloonChoice | None:
    request, state = search.membership.request, search.state
    best, most = None, (0, 0)
    for one in _of_type(search):
        # `has_room` last: it takes longest, and few balloons beat the best so far.
        rank = free_capacity(one, state), -len(one.members)
        if (best is None or rank > most) and has_room(one, request, state):
            best, most = one, rank
    return None if best is None else BalloonChoice(best.name, Rule.BALANCED, state)


def _inflated(search: Search) -> BalloonChoice | None:
    return _roomiest(search, _of_type(search), Rule.INFLATED)


def _new(search: Search) -> BalloonChoice | None:
    """Choose an empty balloon, or create one."""
    count = 0
    for one in _of_type(search):
        count += 1
        if not one.is_used and fits(search, one):
            return BalloonChoice(one.name, Rule.EMPTY_BALLOON, search.state)
    kind, context = search.kind, search.context
    full = kind.max_balloons is not None and count >= kind.max_balloons
    # A new balloon needs a CPU even for a container that requests none.
    if full or not search.state.free:
        return None
    state, name = create(kind, search.state, context)
    found = Search(search.spec, search.membership, kind, state, context)
    # The minimum size of its type, or of its components, must be free as well.
    least = sum(needed_cpus(state.balloons[name], state, context).values())
    if least > len(state.free) or not fits(found, state.balloons[name]):
        return None
    return BalloonChoice(name, Rule.NEW_BALLOON, state)


def _of_type(search: Search) -> Iterator[Balloon]:
    return search.state.of_type(search.kind.name)


def _max_free(search: Search, balloon: Balloon) -> int:
    """Return the room of a balloon once it has grown; -1 if it can have no CPU."""
    most = 0
    if search.kind.max_cpus != 0:
        most = capacity(balloon, search.state, search.context)
    return most - balloon.load if most > 0 else -1
