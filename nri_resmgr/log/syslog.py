"""Log lines to the system's log, be it journald or a syslog daemon."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Final

SYSLOG_SOCKET: Final = "/dev/log"

# syslog(3): the facility "daemon", and the severities of our levels.
_DAEMON: Final = 3 << 3
_DEBUG, _INFO, _WARNING, _ERROR = 7, 6, 4, 3


class SyslogLogger:
    """Sends each line as one datagram; what nobody takes is dropped.

    Logging must not stop a plugin: the socket does not block.

    Source:
        RFC 3164, as journald and rsyslog read it on /dev/log.
    """

    def __init__(self, path: str = SYSLOG_SOCKET) -> None:
        self._tag = f"nri-resmgr[{os.getpid()}]"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):
            self._socket.connect(path)

    @classmethod
    def factory(cls, path: str = SYSLOG_SOCKET) -> Callable[..., SyslogLogger]:
        """Make one logger and hand it to every module that asks."""
        logger = cls(path)
        return lambda *_: logger

    def debug(self, message: str) -> None:
        """Send a line for developers."""
        self._send(_DEBUG, message)

    def info(self, message: str) -> None:
        """Send a line about the normal course."""
        self._send(_INFO, message)

    def warning(self, message: str) -> None:
        """Send a line that somebody should look at."""
        self._send(_WARNING, message)

    def error(self, message: str) -> None:
        """Send a line that somebody must act on."""
        self._send(_ERROR, message)

    def close(self) -> None:
        """Close the socket; lines after that are dropped."""
        self._socket.close()

    def _send(self, severity: int, message: str) -> None:
        line = f"<{_DAEMON | severity}>{self._tag}: {message}"
        with contextlib.suppress(OSError):
            self._socket.send(line.encode(errors="replace"))
