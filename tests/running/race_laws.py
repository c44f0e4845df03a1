"""What must hold on a node soon after the last event."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.values import CpuSet
from tests.real_host.patience import patience
from tests.running.cgroup_world import CgroupWorld
from tests.running.race_daemon import RaceDaemon

SETTLED: Final = 2.0
"""Seconds within which all laws hold once nothing more happens."""

_RECORDED: Final = 30.0  # seconds; records have no haste


class RaceLaws:
    """Compares decisions of the daemon with the cgroups of containers."""

    def __init__(self, world: CgroupWorld, daemon: RaceDaemon) -> None:
        self._world = world
        self._daemon = daemon

    async def settle(self, limit: float = SETTLED) -> float:
        """Wait until all laws hold; return the seconds that it took.

        Raises:
            AssertionError: One does not hold then.
        """
        begin = time.monotonic()
        while True:
            asked = time.monotonic()
            try:
                await self.check()
            except AssertionError:
                if asked - begin > patience(limit):
                    raise
                await asyncio.sleep(0.05)
            else:
                return time.monotonic() - begin

    async def check(self) -> None:
        """Check all laws but that of the runtime's record.

        Raises:
            AssertionError: One does not hold.
        """
        rows, living = await self._daemon.rows(), self._world.living()
        assert living.keys() <= rows.keys()
        ended = {
            key
            for key, one in self._world.containers.items()
            if one.state == nri_pb2.CONTAINER_STOPPED
        }
        assert rows.keys() <= self._world.containers.keys() - ended
        wanted = {key: CpuSet.parse(rows[key]["cpus"]) for key in living}
        wrong = {
            key: (str(cpus), str(wanted[key]))
            for key, cpus in living.items()
            if wanted[key] and cpus != wanted[key]
        }
        assert not wrong
        # Otherwise verification has found what should have been written before. Weights
        # do not count: a cgroup has one before the runtime writes it.
        repaired = {
            key
            for key, row in rows.items()
            if (row["verification"] or {}).get("repairs")
        }
        assert not (repaired and repaired & self._daemon.drifted())
        for key, row in rows.items():
            own = CpuSet.parse(row["exclusive"])
            others = {one: cpus for one, cpus in living.items() if one != key}
            shared = {
                one: str(cpus & own) for one, cpus in others.items() if cpus & own
            }
            assert not shared, (key, shared)

    async def record_follows(self) -> None:
        """The runtime's record has what was decided, in the end."""
        end = time.monotonic() + patience(_RECORDED)
        while True:
            rows = await self._daemon.rows()
            wrong = {
                key: (recorded, rows[key]["cpus"])
                for key in self._world.living()
                if (recorded := self._world.recorded(key)) != rows[key]["cpus"]
            }
            if not wrong:
                return
            assert time.monotonic() < end, (wrong, self._daemon.log_end())
            await asyncio.sleep(0.1)
