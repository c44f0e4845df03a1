"""Notifications to systemd, for a service of ``Type=notify``."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.log import Logger
from nri_resmgr.stub import Stub
from nri_resmgr.stub.errors import SessionError

log = Logger(__name__)

_MICROSECONDS: Final = 1_000_000


class Notifier:
    """Sends states to systemd; errors are ignored.

    Source:
        sd_notify(3), NOTES, "These functions send a single datagram".
    """

    def __init__(self, path: str) -> None:
        # A name in the abstract namespace is written with @ for its zero byte.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path

    def send(self, *states: str) -> None:
        """Send states such as ``READY=1`` in one datagram."""
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.setblocking(False)
            sender.connect(self._address)
            sender.send("\n".join(states).encode())


def watchdog_interval(environment: Mapping[str, str], pid: int) -> float | None:
    """Return the seconds between two watchdog signals; None without a watchdog.

    Source:
        sd_watchdog_enabled(3): half of the time after which systemd kills the service.
    """
    meant_for = environment.get("WATCHDOG_PID", str(pid))
    text = environment.get("WATCHDOG_USEC", "")
    if meant_for != str(pid) or not text.isdecimal() or not int(text):
        return None
    return int(text) / _MICROSECONDS / 2


async def notify_systemd(stub: Stub, environment: Mapping[str, str]) -> None:
    """Notify systemd of readiness, of liveness, and of the end; never returns.

    Args:
        stub: The sessions with the runtime.
        environment: The variables set by systemd.
    """
    notifier = Notifier(environment["NOTIFY_SOCKET"])
    try:
        await _first_synchronized(stub)
        notifier.send("READY=1", f"STATUS=in sync with {stub.runtime}")
        log.debug("systemd.notified", state="ready")
        interval = watchdog_interval(environment, os.getpid())
        while interval is not None:
            notifier.send("WATCHDOG=1")
            await asyncio.sleep(until_tick(interval))
        await asyncio.get_running_loop().create_future()
    finally:
        notifier.send("STOPPING=1")


async def _first_synchronized(stub: Stub) -> None:
    while True:
        await stub.started()
        with suppress(SessionError):  # it ended; wait for the next session
            await stub.synchronized()
            return
