"""Balloons that are there before any container: given CPUs, and minimum numbers."""

from __future__ import annotations

from typing import Final

from nri_resmgr.policy.balloons.context import Ground
from nri_resmgr.policy.balloons.resize import create, inflate
from nri_resmgr.policy.balloons.settings import RESERVED, BalloonType
from nri_resmgr.policy.balloons.state import BalloonsState
from nri_resmgr.policy.cpus import CpuPriority

_ORDER: Final = (
    CpuPriority.HIGH,
    CpuPriority.NORMAL,
    CpuPriority.LOW,
    CpuPriority.ANY,
)


def with_given(
    state: BalloonsState, ground: Ground, *, as_far: bool = False
) -> BalloonsState:
    """Make all balloons whose CPUs are given: by their types, or as reserved ones.

    Args:
        state: No balloons.
        ground: The machine and the settings.
        as_far: Whether the reserved ones may have to do with fewer CPUs.

    Raises:
        BalloonShort: There are too few CPUs.
    """
    for kind in ground.settings.types:
        for _ in kind.cpus:
            state, _ = create(kind, state, ground)
    if reserved := ground.settings.reserved:
        kind = ground.settings.by_name[RESERVED]
        for _ in range(kind.min_balloons):
            state, name = create(kind, state, ground)
            state = inflate(name, state, ground, inside=reserved, as_far=True)
            state = inflate(name, state, ground, as_far=as_far)
    return state


def with_minimum(
    state: BalloonsState, ground: Ground, *, as_far: bool = False
) -> BalloonsState:
    """Make balloons until there are as many of each type as there have to be.

    Args:
        state: The balloons that there are.
        ground: The machine and the settings.
        as_far: Whether they may have to do with fewer CPUs than they should.

    Raises:
        BalloonShort: There are too few free CPUs.
    """
    for kind in sorted(ground.settings.types, key=_turn):
        missing = kind.min_balloons - sum(1 for _ in state.of_type(kind.name))
        for _ in range(missing):
            state, name = create(kind, state, ground)
            state = inflate(name, state, ground, as_far=as_far)
    return state


def _turn(kind: BalloonType) -> int:
    return _ORDER.index(kind.priority)
