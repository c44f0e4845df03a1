"""Where a container could be, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nri_resmgr.control.containers import Data
from nri_resmgr.policy.sentences import DECIDED_SENTENCES


def candidates_of(container: str, policy: Any, state: Any) -> Iterator[Data]:
    """Yield the pools that could take a container if it came now, best first.

    None where pools are not ranked: only the topology-aware policy does that.
    """
    if policy.kind != "TopologyAwarePolicy":
        return
    # Late: another policy's daemon never needs it.
    from nri_resmgr.policy.topology_aware.ranking import ranking

    for one in ranking(container, state, policy.settings):
        yield {
            "pool": one.pool,
            "decided": one.decided,
            "sentence": DECIDED_SENTENCES[one.decided],
            "merits": [{"by": by, "value": value} for by, value in one.merits],
        }
