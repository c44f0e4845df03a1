"""Reads ``rebalance``: when containers move to better places by themselves."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.durations import read_seconds
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.policy_config import MOST_MOVED, REBALANCE, RebalanceUse
from nri_resmgr.config.table import Table

# A container that moves needs some time to fill its caches again.
_SHORTEST: Final = 1.0  # seconds


def read_rebalance(spec: Table) -> RebalanceUse:
    """Read ``rebalance`` of a document that has it."""
    table, default = spec.table(REBALANCE, "interval", "atMost"), RebalanceUse()
    interval = read_seconds(table, "interval", default.interval)
    if 0 < interval < _SHORTEST:
        why = f"expected {_SHORTEST:g}s or more, or 0 for never"
        raise BadSetting(table.at("interval"), why)
    return RebalanceUse(
        interval, table.number("atMost", 1, MOST_MOVED, default.at_most)
    )
