"""Log lines to the system's log: systemd's journal with fields, or syslog."""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import struct
from collections.abc import Mapping
from typing import Final

from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING

SYSLOG_SOCKET: Final = "/dev/log"

SEVERITIES: Final = {DEBUG: 7, INFO: 6, WARNING: 4, ERROR: 3}
"""Severities of syslog(3) by log level."""

_DAEMON: Final = 3 << 3  # the facility

# Longer datagrams may be refused as a whole; tracebacks are shorter.
MOST_BYTES: Final = 64 << 10

JOURNALD_SOCKET: Final = "/run/systemd/journal/socket"

IDENTIFIER: Final = "nri-resmgr"
PREFIX: Final = "NRI_RESMGR_"

# A name has at most 64 of these characters, a letter first.
_ILLEGAL: Final = re.compile("[^A-Z0-9_]")
_LONGEST_NAME: Final = 64

# The reader was restarted, or has only now been started.
_RECONNECT: Final = frozenset({errno.ECONNREFUSED, errno.ENOTCONN, errno.ENOENT})


class _Datagrams:
    """Sends to a path without waiting; datagrams without a reader are dropped."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = self._connected()

    def wait(self) -> None:
        """See `Sink.wait`."""
        ready = select.poll()
        ready.register(self._socket, select.POLLOUT)
        ready.poll()

    def close(self) -> None:
        """See `Sink.close`; later datagrams are dropped."""
        self._socket.close()

    def _send(self, data: bytes) -> bool:
        try:
            self._socket.send(data)
        except OSError as error:
            return error.errno in _RECONNECT and self._send_anew(data)
        return True

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


class Syslog(_Datagrams):
    """Sends each line as one datagram; without a reader it is dropped.

    Source:
        RFC 3164, as journald and rsyslog read it on /dev/log.
    """

    has_clock: bool = True
    has_fields: bool = False

    def __init__(self, path: str = SYSLOG_SOCKET) -> None:
        super().__init__(path)
        self._tag = f"nri-resmgr[{os.getpid()}]"

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:  # noqa: ARG002 - a sink's
        """See `Sink.write`."""
        text = f"<{_DAEMON | SEVERITIES[level]}>{self._tag}: {line}"
        return self._send(text.encode(errors="replace")[:MOST_BYTES])


class Journald(_Datagrams):
    """Sends each line as one datagram of fields; without a reader it is dropped.

    ``journalctl NRI_RESMGR_CONTAINER=...`` then finds a container's lines.

    Source:
        systemd, docs/JOURNAL_NATIVE_PROTOCOL.md; systemd.journal-fields(7).
    """

    has_clock: bool = True
    has_fields: bool = True

    def __init__(self, path: str = JOURNALD_SOCKET) -> None:
        super().__init__(path)

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:
        """See `Sink.write`."""
        standard = {
            "PRIORITY": str(SEVERITIES[level]),
            "SYSLOG_IDENTIFIER": IDENTIFIER,
            "MESSAGE": line[:MOST_BYTES],
        }
        named = {_name(key): str(value)[:MOST_BYTES] for key, value in fields.items()}
        return self._send(b"".join(map(_entry, (standard | named).items())))


def _name(key: str) -> str:
    return PREFIX + _ILLEGAL.sub("_", key.upper())[: _LONGEST_NAME - len(PREFIX)]


def _entry(field: tuple[str, str]) -> bytes:
    name, data = field[0].encode(), field[1].encode(errors="replace")
    if b"\n" in data:
        return b"%b\n%b%b\n" % (name, struct.pack("<Q", len(data)), data)
    return b"%b=%b\n" % (name, data)
