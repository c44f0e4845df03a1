"""What pools say must add up, whatever the policy and whatever happened."""

from __future__ import annotations

from typing import Any

from nri_resmgr.policy.views import PoolUse, ViewedPolicy
from nri_resmgr.values import CpuSet


def check_pools(policy: ViewedPolicy[Any], state: Any) -> None:
    """Check what *policy* says of its pools in *state*."""
    if policy.kind == "NonePolicy":
        assert not policy.pools(state)
        assert not any(policy.pins(state).values())
        return
    pools, available = policy.pools(state), policy.settings.available  # type: ignore[attr-defined] # every policy here has settings
    names = [one.name for one in pools]
    assert len(names) == len(set(names))
    for place, one in enumerate(pools):
        assert not one.within or one.within in names[:place]
        check_parts(one, available)
    if policy.kind != "TopologyAwarePolicy":  # whose reserved CPUs are in pools, too
        wholes = [one for one in pools if not one.within]
        assert sum(len(one.cpus) for one in wholes) == len(available)
        assert CpuSet.union(one.cpus for one in wholes) == available
    inside = [key for one in pools for key in one.containers]
    assert len(inside) == len(set(inside))
    pins = policy.pins(state)
    assert {key for key, pin in pins.items() if pin.cpus} <= set(inside) <= pins.keys()


def check_parts(one: PoolUse, available: CpuSet) -> None:
    """Check that every available CPU of a pool is there for one thing."""
    parts = (one.shared, one.isolated, one.exclusive, one.reserved)
    assert sum(map(len, parts)) == len(one.cpus & available)
    assert CpuSet.union(parts) == one.cpus & available
    assert not one.idle & one.cpus
    assert one.free >= 0
    assert 0 <= one.memory_granted <= one.memory
