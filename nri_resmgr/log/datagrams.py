"""A datagram socket whose reader may be slow, missing or restarted."""

from __future__ import annotations

import errno
import socket
from typing import Final

# The reader was restarted, or has only now been started.
_RECONNECT: Final = frozenset({errno.ECONNREFUSED, errno.ENOTCONN, errno.ENOENT})


class Datagrams:
    """Sends to a path without waiting; datagrams without a reader are dropped."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = self._connected()

    def send(self, data: bytes) -> bool:
        """Send one datagram; return whether it was accepted."""
        try:
            self._socket.send(data)
        except OSError as error:
            return error.errno in _RECONNECT and self._send_anew(data)
        return True

    def close(self) -> None:
        """Close the socket; later datagrams are dropped."""
        self._socket.close()

    def _send_anew(self, data: bytes) -> bool:
        self._socket.close()
        self._socket = self._connected()
        try:
            self._socket.send(data)
        except OSError:
            return False
        return True

    def _connected(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.connect_ex(self._path)
        return made
