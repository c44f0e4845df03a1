"""Checks once a minute whether managers of the kubelet conflict with this plugin."""

from __future__ import annotations

import asyncio
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.kubelet import managers_in_the_way
from nri_resmgr.log import Logger

log = Logger(__name__)

_INTERVAL: Final = 60.0  # seconds


async def check_kubelet(daemon: Daemon) -> None:
    """Keep ``daemon.kubelet`` up to date, and log each change; never returns."""
    while True:
        found = managers_in_the_way(daemon.tree)
        if found != daemon.kubelet:
            for manager in found:
                log.warning(
                    "kubelet.manager-conflict",
                    manager=manager.kind,
                    policy=manager.policy,
                    why=str(manager),
                )
            if not found:
                log.info("kubelet.manager-conflict-resolved")
            daemon.kubelet = found
        await asyncio.sleep(until_tick(_INTERVAL))
