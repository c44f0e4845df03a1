"""Busy time of the CPUs of pools, counted from one scrape to the next."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.host.cpu_time import TICKS_PER_SECOND, Ticks
from nri_resmgr.policy.views import PoolUse


class BusyPools:
    """Adds the time of each CPU to the pools that have it when the time is read.

    The sums of a pool that is gone are dropped, and begin at 0 if it comes back, as
    counters do when a process starts again.
    """

    def __init__(self) -> None:
        self._before: Ticks = {}
        self._sums: dict[tuple[str, str], int] = {}

    def series(self, now: Ticks, pools: Iterable[PoolUse]) -> Series:
        """Return the seconds by pool, with those since the last call.

        Args:
            now: The ticks of all online CPUs.
            pools: The present ones.
        """
        busy = {
            # Ticks begin at 0 for a CPU that was offline.
            cpu: max(ticks - self._before[cpu][0], 0)
            for cpu, (ticks, _) in now.items()
            if cpu in self._before
        }
        self._before, before = now, self._sums
        self._sums = {
            (pool.name, pool.kind): before.get((pool.name, pool.kind), 0)
            + sum(busy.get(cpu, 0) for cpu in pool.cpus)
            for pool in pools
        }
        rows = {key: ticks / TICKS_PER_SECOND for key, ticks in self._sums.items()}
        return Series(table.POOL_BUSY, rows)
