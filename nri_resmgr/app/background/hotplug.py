"""Hotplug: polls for CPUs and memory that come or go, and updates the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nri_resmgr.app.background.periodic import found_by
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# The kernel moves the tasks of a removed CPU at once. What remains is to use added
# CPUs, which is not urgent.
INTERVAL: Final = 10.0  # seconds


async def follow_hotplug(
    poll: Callable[[], Machine | None],
    take: Callable[[Machine], None],
    interval: float = INTERVAL,
) -> None:
    """Call *take* with each new model of the machine; never returns.

    Args:
        poll: Returns a new model if there is one; runs in a thread, because it reads
            files for about 60 ms.
        take: May reject a model by an error, which is logged.
        interval: Seconds between polls.
    """
    while True:
        machine = await found_by(poll, interval)
        online, memory = str(machine.online), str(machine.memory_nodes)
        try:
            take(machine)
        except ResmgrError as error:
            log.error("topology.rejected", online=online, why=str(error))
        else:
            log.info("topology.changed", online=online, memory=memory)
