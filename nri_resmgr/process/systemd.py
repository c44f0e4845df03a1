"""Notifications to systemd, for a service of ``Type=notify``."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.log import Logger
from nri_resmgr.values.printable import printable

log = Logger(__name__)

_MICROSECONDS: Final = 1_000_000


class Notifier:
    """Sends states to systemd; errors are ignored.

    The socket is made once: without a free descriptor for another one, the watchdog
    would end the process.

    Raises:
        OSError: There is no descriptor for the socket.

    Source:
        sd_notify(3), NOTES, "These functions send a single datagram".
    """

    def __init__(self, path: str) -> None:
        # A name in the abstract namespace is written with @ for its zero byte.
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, *states: str) -> None:
        """Send states such as ``READY=1`` in one datagram, each made `printable`."""
        # By address: systemd makes its socket again when it is started again.
        with suppress(OSError):
            content = "\n".join(map(printable, states)).encode()
            self._socket.sendto(content, self._address)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


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


async def notify_systemd(
    environment: Mapping[str, str],
    is_healthy: Callable[[], bool],
    until_ready: Callable[[], Awaitable[str]],
) -> None:
    """Notify systemd of readiness, of liveness, and of the end; never returns.

    Args:
        environment: The variables set by systemd.
        is_healthy: Whether this process should go on; otherwise the watchdog gets no
            signal, as `/healthz` fails.
        until_ready: Waits until the service counts as started; returns its status, for
            ``systemctl status``.
    """
    notifier = Notifier(environment["NOTIFY_SOCKET"])
    try:
        notifier.send("READY=1", f"STATUS={await until_ready()}")
        log.debug("systemd.notified", state="ready")
        interval = watchdog_interval(environment, os.getpid())
        while interval is not None:
            if is_healthy():
                notifier.send("WATCHDOG=1")
            await asyncio.sleep(until_tick(interval))
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        notifier.send("STOPPING=1")
        raise
    finally:
        notifier.close()
