"""How many CPUs a balloon needs, and how many it could have."""

from __future__ import annotations

from typing import Final

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.settings import BalloonType
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState

_CPU: Final = 1000  # thousandths


def need(balloon: Balloon, state: BalloonsState, ground: Ground) -> dict[str, int]:
    """Return how many CPUs each leaf of a balloon should have, by name.

    Enough for what its containers ask for, at least one where there is any
    container, at most its type's maximum, at least its minimum.
    """
    kind, used = ground.type_of(balloon), bool(balloon.members)
    if not balloon.parts:
        return {balloon.name: _leaf_need(balloon.load, kind, balloon, used=used)}
    milli = _clamped(balloon.load, kind)
    return {
        leaf.name: _leaf_need(-(-milli // share), ground.type_of(leaf), leaf, used=used)
        for leaf, share in state.leaves(balloon)
    }


def has_room(balloon: Balloon, request: int, state: BalloonsState) -> bool:
    """Tell whether a request fits without another CPU; nothing always does."""
    for leaf, _ in state.leaves(balloon):
        if not leaf.cpus:
            return False
    return not request or spare(balloon, state) >= request


def spare(balloon: Balloon, state: BalloonsState) -> int:
    """Return how many thousandths of a balloon's CPUs nobody asked for."""
    if not balloon.parts:
        return _CPU * balloon.cpus.bits.bit_count() - balloon.load
    leaves = state.leaves(balloon)
    return min(_CPU * len(leaf.cpus) * share for leaf, share in leaves) - balloon.load


def most_spare(balloon: Balloon, state: BalloonsState, ground: Ground) -> int:
    """Return the same for the balloon as large as it could be now."""
    return capacity(balloon, state, ground) - balloon.load


def capacity(balloon: Balloon, state: BalloonsState, ground: Ground) -> int:
    """Return the thousandths that a balloon could have with all free CPUs."""
    kind, free = ground.type_of(balloon), state.free.bits.bit_count()
    if not balloon.parts:
        return _CPU * most_cpus(balloon, kind, free)
    leaves = [
        (leaf, share, most_cpus(leaf, ground.type_of(leaf), free))
        for leaf, share in state.leaves(balloon)
    ]
    most = min(_CPU * size * share for _, share, size in leaves)
    # Components that grow share the free CPUs: step down until they suffice.
    while most > 0 and _missing(most, leaves) > free:
        most -= _CPU
    return _clamped(most, kind, low=False)


def most_cpus(balloon: Balloon, kind: BalloonType, free: int) -> int:
    """Return the size that a balloon of one type could reach."""
    if kind.cpus:
        return len(kind.cpus[balloon.index])
    most = balloon.cpus.bits.bit_count() + free
    return most if kind.max_cpus is None else min(kind.max_cpus, most)


def _missing(milli: int, leaves: list[tuple[Balloon, int, int]]) -> int:
    wanted = ((-(-milli // (share * _CPU)), leaf) for leaf, share, _ in leaves)
    return sum(max(count - len(leaf.cpus), 0) for count, leaf in wanted)


def _clamped(milli: int, kind: BalloonType, *, low: bool = True) -> int:
    if kind.max_cpus is not None:
        milli = min(milli, _CPU * kind.max_cpus)
    return max(milli, _CPU * kind.min_cpus) if low else milli


def _leaf_need(milli: int, kind: BalloonType, leaf: Balloon, *, used: bool) -> int:
    if kind.cpus:
        return len(kind.cpus[leaf.index])
    count = -(-milli // _CPU) or int(used)
    if kind.max_cpus is not None:
        count = min(count, kind.max_cpus)
    return max(count, kind.min_cpus)
