"""A service manager as systemd: it reads what a service notifies it of."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

_WATCHDOG: Final = 1.0  # seconds; the service signals twice as often
_LONGEST: Final = 4096  # bytes of a message


@attrs.define(eq=False)
class ServiceManager:
    """Reads messages of one service at a time.

    Attributes:
        path: Its socket.
        is_ready: Whether the service has said that it has started.
        last_signal: When it last sent a signal to the watchdog; 0 for never.
    """

    path: Path
    is_ready: bool = False
    last_signal: float = 0.0

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a service of ``Type=notify`` with a watchdog."""
        return {
            "NOTIFY_SOCKET": str(self.path),
            "WATCHDOG_USEC": str(int(_WATCHDOG * 1_000_000)),
        }

    def forget(self) -> None:
        """Expect another process."""
        self.is_ready, self.last_signal = False, 0.0

    def problem(self, since: float) -> str:
        """Return what has not arrived; empty if all has.

        Args:
            since: Monotonic time from which on the watchdog needs a signal.
        """
        if not self.is_ready:
            return "systemd still waits for READY=1"
        return "" if self.last_signal > since else "the watchdog gets no signal"

    def read(self, connected: socket.socket) -> None:
        """Note the messages that wait."""
        with suppress(BlockingIOError):
            while True:
                lines = connected.recv(_LONGEST).decode().splitlines()
                self.is_ready |= "READY=1" in lines
                if "WATCHDOG=1" in lines:
                    self.last_signal = time.monotonic()


@contextmanager
def service_manager_at(path: Path) -> Iterator[ServiceManager]:
    """Listen at *path*; needs a running event loop."""
    found, loop = ServiceManager(path), asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(path))
        system.setblocking(False)
        loop.add_reader(system, found.read, system)
        try:
            yield found
        finally:
            loop.remove_reader(system)
