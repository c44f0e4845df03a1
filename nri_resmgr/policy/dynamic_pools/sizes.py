"""Sizes of pools: what is requested in them, and a share of the rest by use."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.policy.dynamic_pools.settings import SHARED
from nri_resmgr.values import ONE_CPU


class PoolDemand(msgspec.Struct, frozen=True):
    """The amounts that decide on the size of a pool.

    Attributes:
        requested: The sum of the requests in it, thousandths of a CPU.
        containers: Their number.
        weight: How busy its CPUs were together, thousandths of a CPU; 0 if unknown.
    """

    requested: int = 0
    containers: int = 0
    weight: int = 0

    @property
    def base(self) -> int:
        """The CPUs that its requests need."""
        return -(-self.requested // ONE_CPU)


def sizes_of(demands: Mapping[str, PoolDemand], total: int) -> dict[str, int]:
    """Return the number of CPUs of each pool; together they are *total*.

    A pool has what its requests need. What remains is divided by weight; what cannot
    be divided goes to the pool of the highest weight, and to `SHARED` of equal ones. A
    pool without containers weighs nothing.

    Args:
        demands: By pool, `SHARED` among them.
        total: Not less than the sum of `PoolDemand.base`.

    Source:
        CRI Resource Manager, ``dynamic-pools``, its documentation of the division.
    """
    sizes = {name: one.base for name, one in demands.items()}
    weights = {
        name: one.weight if one.containers else 0 for name, one in demands.items()
    }
    remaining, weight = total - sum(sizes.values()), sum(weights.values())
    if not weight:
        sizes[SHARED] += remaining
        return sizes
    # Its containers need a CPU, even if they were idle.
    needs_one = demands[SHARED].containers and not sizes[SHARED]
    if remaining and needs_one and remaining * weights[SHARED] < weight:
        sizes[SHARED] += 1
        remaining -= 1
    shares = {name: remaining * one // weight for name, one in weights.items()}
    heaviest = max(weights, key=lambda name: (weights[name], name == SHARED))
    shares[heaviest] += remaining - sum(shares.values())
    return {name: size + shares[name] for name, size in sizes.items()}
