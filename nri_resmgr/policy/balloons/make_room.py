"""CPUs of balloons in which no container has a CPU request."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.lifecycle import vacate
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.state import Balloon
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec


class Emptied(msgspec.Struct, frozen=True):
    """A state without some containers, whose balloons gave back their CPUs."""

    state: State
    containers: tuple[str, ...]


def gives_way(spec: ContainerSpec) -> bool:
    """Return whether any CPU suffices for a container, also a reserved one.

    That is so without a CPU request. A type that its own annotation names is kept.
    """
    return not spec.request and not spec.preferences.balloon


def may_have_cpus(kind: BalloonType, context: Context) -> bool:
    """Return whether balloons of a type may have CPUs at all."""
    if kind.max_cpus == 0:
        return False
    parts = [context.settings.by_name[one] for one in kind.components]
    return all(may_have_cpus(part, context) for part in parts)


def emptied(state: State, context: Context, but: str = "") -> Iterator[Emptied]:
    """Yield states with more and more CPUs of containers that give way.

    The one whose containers came last is emptied first; the balloon named *but* stays.
    Balloons that hold as many CPUs when they are empty stay, and so do those with
    reserved rooms.
    """
    movable = [
        one
        for name, one in state.balloons.items()
        if name != but and _is_movable(one, state)
    ]
    if not movable:
        return
    gone: list[str] = []
    arrival = {key: place for place, key in enumerate(state.ledger.entries)}
    for balloon in sorted(
        movable, key=lambda one: max(arrival[key] for key in one.members), reverse=True
    ):
        name, left = balloon.name, state
        for key in balloon.members:
            left = left.without_member(key)
        left = vacate(name, left, context)
        if left.free == state.free:
            continue
        state = left
        gone += balloon.members
        yield Emptied(state, tuple(gone))


def _is_movable(balloon: Balloon, state: State) -> bool:
    """Return whether all containers of a balloon give way; it needs no CPU for others.

    One container with a request needs the CPU anyway.
    """
    if balloon.load or balloon.rooms or not balloon.members:
        return False
    return all(gives_way(state.ledger.spec_of(key)) for key in balloon.members)
