"""Which pools could take a container that is here, if it came now."""

from __future__ import annotations

from itertools import islice
from typing import Final

from nri_resmgr.policy.topology_aware.choose import candidates
from nri_resmgr.policy.topology_aware.demand import demand_of
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.views import Candidate

MOST: Final = 16
"""Pools that are ranked; each costs as much as a decision."""


def ranking(
    container: str, state: TopologyAwareState, settings: TopologyAwareSettings
) -> tuple[Candidate, ...]:
    """Rank the pools for a container that is here, best first.

    All others stay as they are. Whether the best one really takes it is not tried.
    """
    demand = demand_of(state.ledger.spec_of(container), settings)
    room = state.take_back(container).room(settings)
    return tuple(
        Candidate(
            one.pool.name,
            one.decided.value,
            tuple((stage.value, merit) for stage, merit in one.scores()),
        )
        for one in islice(candidates(demand, room), MOST)
    )
