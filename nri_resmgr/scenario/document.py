"""Findings as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import Change
from nri_resmgr.scenario.findings import Findings, Placement
from nri_resmgr.values import CpuSet, NodeSet

# Raised when a key changes its meaning or goes.
FORMAT: Final = 1


def findings_document(found: Findings) -> dict[str, Any]:
    """Return findings as dictionaries, lists, texts and numbers.

    CPUs and nodes are in the kernel's list format, amounts of CPU in thousandths,
    of memory in bytes.
    """
    return {
        "format": FORMAT,
        "kind": found.kind,
        "containers": [_plain(one) for one in found.placements],
        "refusals": [_plain(one) for one in found.refusals],
        "pools": [pool_document(one) for one in found.pools],
        "largest": _plain(found.largest),
        "stranded": str(found.stranded),
        "spread": {
            "own": _plain(found.spread),
            "shared": _plain(found.shared_spread),
        },
    }


def pool_document(pool: PoolUse) -> dict[str, Any]:
    """Return one pool; ``largest`` is what one more container could get of it."""
    return {**_plain(pool), "largest": largest_of(pool)}


def largest_of(pool: PoolUse) -> int:
    """Give the most whole CPUs of a pool that one more container could be granted."""
    grantable = pool.shared | pool.isolated
    return min(pool.free // 1000, len(pool.cpus)) if grantable else 0


def changes_document(changes: Iterable[Change]) -> dict[str, Any]:
    """Return what differs between two outcomes."""
    return {"format": FORMAT, "changes": [_plain(one) for one in changes]}


def _plain(value: Placement | Any) -> dict[str, Any]:
    return {name: _simple(one) for name, one in msgspec.structs.asdict(value).items()}


def _simple(value: Any) -> Any:
    match value:
        case CpuSet() | NodeSet():
            return str(value)
        case tuple():
            return [_simple(one) for one in value]
        case str():
            return str(value)
        case int():
            return value
    return dict(value)
