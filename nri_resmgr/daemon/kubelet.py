"""Looks now and then whether the kubelet is in the way, and says so."""

from __future__ import annotations

import asyncio
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.kubelet import static_managers
from nri_resmgr.log import Logger

log = Logger(__name__)

_INTERVAL: Final = 60.0  # seconds


async def look_at_kubelet(daemon: Daemon) -> None:
    """Keep ``daemon.kubelet`` up to date, and warn of each change."""
    while True:
        found = static_managers(daemon.tree)
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
