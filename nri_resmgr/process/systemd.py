"""Notifications to systemd, for a service of ``Type=notify``."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.host.bounded import reason
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError
from nri_resmgr.values.printable import printable

log = Logger(__name__)

_MICROSECONDS: Final = 1_000_000


@dataclass(eq=False)
class NotNotified(HostError):
    """systemd waits for a state that cannot be sent to it."""

    state: str
    why: str

    def __str__(self) -> str:
        return f"systemd cannot be notified of {self.state}: {self.why}"


class Notifier:
    """Sends states to systemd.

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

    def send(self, *states: str) -> str:
        """Send states such as ``READY=1`` in one datagram, each made `printable`.

        Returns:
            Why they cannot be sent, such as a full queue of systemd; empty if they are.
        """
        content = "\n".join(map(printable, states)).encode()
        try:
            # By address: systemd makes its socket again when it is started again.
            self._socket.sendto(content, self._address)
        except OSError as error:
            return reason(error)
        return ""

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

    Raises:
        NotNotified: Readiness could not be sent. It has to be called again, as systemd
            ends a service that does not become ready.
    """
    notifier = Notifier(environment["NOTIFY_SOCKET"])
    try:
        ready = ("READY=1", f"STATUS={await until_ready()}")
        if why := notifier.send(*ready):
            raise NotNotified(ready[0], why)
        log.debug("systemd.notified", state="ready")
        interval = watchdog_interval(environment, os.getpid())
        while interval is not None:
            is_lost = is_healthy() and bool(notifier.send("WATCHDOG=1"))
            # The signal after a lost one would come when systemd's patience ends.
            await asyncio.sleep(until_tick(interval / 10 if is_lost else interval))
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        notifier.send("STOPPING=1")
        raise
    finally:
        notifier.close()
