"""Where a container could be, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nri_resmgr.control.containers import Data
from nri_resmgr.policy.sentences import DECIDED_SENTENCES
from nri_resmgr.policy.views import ViewedPolicy


def candidates_of(
    container: str, policy: ViewedPolicy[Any], state: Any
) -> Iterator[Data]:
    """Yield the pools that could take a container if it came now, best first.

    Nothing where the policy does not rank pools.
    """
    for one in policy.candidates(state, container):
        yield {
            "pool": one.pool,
            "decided": one.decided,
            # A policy of another package may have criteria of its own.
            "sentence": DECIDED_SENTENCES.get(one.decided, one.decided),
            "scores": [{"by": by, "value": value} for by, value in one.scores],
        }
