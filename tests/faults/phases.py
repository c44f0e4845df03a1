"""Phases of the daemon in which faults are made."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from tests.faults.faulty_node import FaultyNode
from tests.faults.node_pods import VISITOR

START: Final = "start"
END: Final = "end"

ACT: Final = 6.0  # seconds for what is done during a fault


async def _create(node: FaultyNode) -> None:
    await node.place(VISITOR)


async def _remove(node: FaultyNode) -> None:
    await node.remove(VISITOR.name)


async def _scrape(node: FaultyNode) -> None:
    await node.daemon.get("/metrics")
    await node.daemon.get("/healthz")
    await node.daemon.probe("/healthz")


async def _control(node: FaultyNode) -> None:
    await node.daemon.ask()


async def _configuration(node: FaultyNode) -> None:
    node.documents.write_configuration()
    await asyncio.sleep(1.3)  # it is looked at once a second


async def _cluster(node: FaultyNode) -> None:
    node.documents.write_adjustments()
    await asyncio.sleep(1.3)  # it is looked at four times a second


async def _hotplug(node: FaultyNode) -> None:
    node.set_online("0-6")
    await asyncio.sleep(1.3)  # it is looked at twice a second
    node.set_online("0-7")
    await asyncio.sleep(1.3)


async def _reload(node: FaultyNode) -> None:
    assert node.daemon.process is not None
    node.daemon.process.send_signal(signal.SIGHUP)
    await asyncio.sleep(0.2)


async def _idle(node: FaultyNode) -> None:
    await asyncio.sleep(1.3)  # a round of verification, and of each poll


async def _session(node: FaultyNode) -> None:
    await node.runtime.stop()
    await asyncio.sleep(0.1)
    await node.runtime.start()
    await node.daemon.in_step(within=ACT)


Act: TypeAlias = Callable[[FaultyNode], Awaitable[None]]

PHASES: Final[dict[str, Act]] = {
    "create": _create,
    "remove": _remove,
    "scrape": _scrape,
    "control": _control,
    "configuration": _configuration,
    "cluster": _cluster,
    "hotplug": _hotplug,
    "reload": _reload,
    "idle": _idle,
    "session": _session,
}
