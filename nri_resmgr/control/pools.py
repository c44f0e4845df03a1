"""Pools, balloons and other sets of CPUs as JSON data."""

from __future__ import annotations

from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values.documents import JsonObject


def pool_of(pool: PoolUse) -> JsonObject:
    """Describe the capacity and the use of a pool."""
    return {
        "kind": pool.kind,
        "name": pool.name,
        "within": pool.within,
        "cpus": str(pool.cpus),
        "shared": str(pool.shared),
        "isolated": str(pool.isolated),
        "exclusive": str(pool.exclusive),
        "reserved": str(pool.reserved),
        "idle": str(pool.idle),
        "cpu": {
            "capacity": pool.capacity,
            "granted": pool.granted,
            "free": pool.free,
        },
        "mems": str(pool.mems),
        "memory": {"capacity": pool.memory, "granted": pool.memory_granted},
        "containers": list(pool.containers),
        "labels": dict(pool.labels),
    }
