"""Invariants between two events, checked by the control socket and replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nri_resmgr.values import CpuSet
from tests.soak.node import BusyNode, Lodger


def check(state: Mapping[str, Any], node: BusyNode) -> None:
    """Compare the state that the daemon reports with the values in its replies.

    Raises:
        AssertionError: They differ, or a container runs on exclusive CPUs of another.
    """
    found = {one["id"]: one for one in state["containers"]}
    assert found.keys() == node.living.keys()
    for key, row in found.items():
        _check_reported(row, node.living[key])
    _check_exclusive(found)
    _check_pools(state)


def _check_reported(row: Mapping[str, Any], lodger: Lodger) -> None:
    cpus, mems = lodger.pin
    assert (row["cpus"], row["mems"]) == (cpus, mems), (row, lodger.pin)


def _check_exclusive(rows: Mapping[str, Mapping[str, Any]]) -> None:
    own = {key: CpuSet.parse(row["exclusive"]) for key, row in rows.items()}
    taken = CpuSet.union(own.values())
    assert sum(map(len, own.values())) == len(taken)
    for key, row in rows.items():
        assert CpuSet.parse(row["cpus"]) & taken == own[key], key


def _check_pools(state: Mapping[str, Any]) -> None:
    online = CpuSet.parse(state["cpus"]["online"])
    for pool in state["pools"]:
        assert CpuSet.parse(pool["cpus"]) <= online
        assert pool["cpu"]["granted"] <= pool["cpu"]["capacity"]
        assert pool["memory"]["granted"] <= pool["memory"]["capacity"]
    for one in state["nodes"]:
        assert one["memory"]["granted"] <= one["memory"]["capacity"]
