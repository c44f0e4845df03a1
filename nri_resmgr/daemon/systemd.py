"""What systemd is told of a service of ``Type=notify``."""

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
    """Sends words to systemd; a system that does not listen is none of our business.

    Source:
        sd_notify(3), NOTES, "These functions send a single datagram".
    """

    def __init__(self, path: str) -> None:
        # A name in the abstract namespace is written with @ for its zero byte.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path

    def tell(self, *words: str) -> None:
        """Send words such as ``READY=1``, together."""
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.setblocking(False)
            sender.connect(self._address)
            sender.send("\n".join(words).encode())


def watchdog_interval(environment: Mapping[str, str], pid: int) -> float | None:
    """Return the seconds between two signs of life; None if nobody waits for any.

    Source:
        sd_watchdog_enabled(3): half of the time after which we would be killed.
    """
    meant_for = environment.get("WATCHDOG_PID", str(pid))
    text = environment.get("WATCHDOG_USEC", "")
    if meant_for != str(pid) or not text.isdecimal() or not int(text):
        return None
    return int(text) / _MICROSECONDS / 2


async def keep_informed(stub: Stub, environment: Mapping[str, str]) -> None:
    """Tell systemd when the node is in sync, that we live, and that we stop.

    Args:
        stub: Whose sessions count.
        environment: Where systemd says how to reach it.
    """
    notifier = Notifier(environment["NOTIFY_SOCKET"])
    try:
        await _first_synchronized(stub)
        notifier.tell("READY=1", f"STATUS=in sync with {stub.runtime}")
        log.debug("systemd.notified", state="ready")
        interval = watchdog_interval(environment, os.getpid())
        while interval is not None:
            notifier.tell("WATCHDOG=1")
            await asyncio.sleep(until_tick(interval))
        await asyncio.get_running_loop().create_future()
    finally:
        notifier.tell("STOPPING=1")


async def _first_synchronized(stub: Stub) -> None:
    while True:
        await stub.started()
        with suppress(SessionError):  # it ended before; there will be another
            await stub.synchronized()
            return
