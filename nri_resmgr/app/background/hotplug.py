"""CPUs and memory that come and go, taken to the policy in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nri_resmgr.app.background.periodic import found_by
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# The kernel has moved the tasks of a CPU that went before anybody is told. What is
# left is to use the CPUs that came, and nobody waits for these by the second.
INTERVAL: Final = 10.0  # seconds


async def follow_hotplug(
    poll: Callable[[], Machine | None],
    take: Callable[[Machine], None],
    interval: float = INTERVAL,
) -> None:
    """Have *take* called with each new model of the machine; never returns.

    Args:
        poll: Gives a new model if there is one; runs in a thread, because it reads
            files for as long as some five dozen milliseconds.
        take: May refuse a model by an error, which is logged.
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
