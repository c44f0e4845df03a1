"""Hotplug: polls for CPUs and memory that come or go, and updates the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nri_resmgr.app.background.threads import found_by
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# The kernel moves the tasks of a removed CPU at once; where their cpuset has no other
# one, to any CPUs. No container is to be there a second later, and to place them anew
# takes time, too.
INTERVAL: Final = 0.5  # seconds


class HotplugFollower:
    """Passes each new model of the machine on.

    Args:
        poll: Returns a new model if there is one; runs in a thread, because it reads
            files for about 60 ms.
        take: May reject a model by an error, which is logged.
        interval: Seconds between polls.
    """

    def __init__(
        self,
        poll: Callable[[], Machine | None],
        take: Callable[[Machine], None],
        interval: float = INTERVAL,
    ) -> None:
        self._poll = poll
        self._take = take
        self._interval = interval
        self._found: Machine | None = None  # not taken yet

    async def follow(self) -> None:
        """Follow hotplug until cancelled; call it again after an exception."""
        while True:
            if self._found is None:
                self._found = await found_by(self._poll, self._interval)
            machine = self._found
            online, memory = str(machine.online), str(machine.memory_nodes)
            try:
                self._take(machine)
            except ResmgrError as error:
                log.error("topology.rejected", online=online, why=str(error))
            else:
                log.info("topology.changed", online=online, memory=memory)
            self._found = None
