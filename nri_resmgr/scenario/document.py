"""Findings as JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import FindingChange
from nri_resmgr.scenario.findings import Findings
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.values.documents import JsonObject

# Increased when a key is removed or changes its meaning.
FORMAT: Final = 1


def findings_document(found: Findings) -> JsonObject:
    """Return findings as dictionaries, lists, texts and numbers.

    CPUs and nodes are in the kernel's list format, CPU amounts in thousandths, memory
    in bytes.
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
            "exclusive": _plain(found.spread),
            "shared": _plain(found.shared_spread),
        },
    }


def pool_document(pool: PoolUse) -> JsonObject:
    """Return a pool; ``largest`` is the most CPUs for one more container."""
    return {**_plain(pool), "largest": largest_of(pool)}


def largest_of(pool: PoolUse) -> int:
    """Return the most whole CPUs that a pool could grant to one more container."""
    grantable = pool.shared | pool.isolated
    return min(pool.free // 1000, len(pool.cpus)) if grantable else 0


def changes_document(changes: Iterable[FindingChange]) -> JsonObject:
    """Return the differences between two runs."""
    return {"format": FORMAT, "changes": [_plain(one) for one in changes]}


def _plain(value: msgspec.Struct) -> JsonObject:
    return {name: _simple(one) for name, one in msgspec.structs.asdict(value).items()}


def _simple(value: object) -> object:
    match value:
        case CpuSet() | NodeSet():
            return str(value)
        case tuple():
            return [_simple(one) for one in value]
        case str():
            return str(value)
        case int():
            return value
        case Mapping():
            return dict(value)
    raise TypeError(f"no plain form of {type(value).__name__}")
