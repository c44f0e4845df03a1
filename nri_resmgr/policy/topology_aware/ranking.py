"""Which pools could take a container that is here, if it came now."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import demand_of
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState

MOST: Final = 16
"""Pools that are ranked; each costs as much as a decision."""


class Ranked(msgspec.Struct, frozen=True):
    """A pool with the capacity for a container.

    Attributes:
        pool: Its name.
        decided: What tells it from the pools after it.
        merits: How good it is in each respect, the weightiest first; more is better.
    """

    pool: str
    decided: str
    merits: tuple[tuple[str, int], ...]


def ranking(
    container: str, state: TopologyAwareState, settings: TopologyAwareSettings
) -> tuple[Ranked, ...]:
    """Rank the pools for a container that is here, best first.

    All others stay as they are. Whether the best one really takes it is not tried.
    """
    demand = demand_of(state.ledger.spec_of(container), settings)
    room = state.take_back(container).room(settings)
    return tuple(
        Ranked(
            one.pool.name,
            one.decided.value,
            tuple((stage.value, merit) for stage, merit in one.scores()),
        )
        for one in islice(candidates(demand, room), MOST)
    )
