"""The time in which the CPUs of pools were busy."""

from __future__ import annotations

import os
from typing import cast

import msgspec

from nri_resmgr.app.metrics.busy_pools import BusyPools
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import CpuSet

SECOND = os.sysconf("SC_CLK_TCK")
ONE = PoolUse(kind="balloon", name="one", cpus=CpuSet.parse("0-1"))
TWO = PoolUse(kind="balloon", name="two", cpus=CpuSet.parse("2"))


def seconds(of: BusyPools, ticks: list[int], *pools: PoolUse) -> dict[str, float]:
    """Read the ticks of CPU 0 and the next, and return the sums by name."""
    now = {cpu: (busy * SECOND, 0) for cpu, busy in enumerate(ticks)}
    values = of.series(now, pools).values
    return {key[0]: cast("float", value) for key, value in values.items()}


def test_a_cpu_counts_for_the_pool_that_has_it() -> None:
    busy = BusyPools()

    assert seconds(busy, [9, 9, 9], ONE, TWO) == {"one": 0, "two": 0}
    assert seconds(busy, [10, 11, 13], ONE, TWO) == {"one": 3, "two": 4}
    three = msgspec.structs.replace(TWO, cpus=CpuSet.parse("1-2"))
    less = msgspec.structs.replace(ONE, cpus=CpuSet.parse("0"))
    assert seconds(busy, [11, 12, 14], less, three) == {"one": 4, "two": 6}


def test_the_counters_of_a_cpu_that_was_offline_start_over() -> None:
    busy = BusyPools()
    seconds(busy, [9, 9], ONE)

    assert seconds(busy, [10], ONE) == {"one": 1}
    assert seconds(busy, [10, 50], ONE) == {"one": 1}
    assert seconds(busy, [10, 1], ONE) == {"one": 1}
    assert seconds(busy, [10, 2], ONE) == {"one": 2}


def test_the_sums_of_removed_pools_are_discarded() -> None:
    busy = BusyPools()
    for now in (0, 5):
        seconds(busy, [now, now, now], ONE, TWO)

    assert seconds(busy, [5, 5, 5], ONE) == {"one": 10}
    assert seconds(busy, [5, 5, 6], ONE, TWO) == {"one": 10, "two": 1}
