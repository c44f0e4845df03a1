"""Log lines to the system's log: journald or a syslog daemon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from nri_resmgr.log.datagrams import Datagrams
from nri_resmgr.log.levels import DEBUG, ERROR, INFO, WARNING

SYSLOG_SOCKET: Final = "/dev/log"

SEVERITIES: Final = {DEBUG: 7, INFO: 6, WARNING: 4, ERROR: 3}
"""Severities of syslog(3) by log level."""

_DAEMON: Final = 3 << 3  # the facility

# Longer datagrams may be refused as a whole; tracebacks are shorter.
MOST_BYTES: Final = 64 << 10


class Syslog:
    """Sends each line as one datagram; without a reader it is dropped.

    Source:
        RFC 3164, as journald and rsyslog read it on /dev/log.
    """

    has_clock: bool = True
    has_fields: bool = False

    def __init__(self, path: str = SYSLOG_SOCKET) -> None:
        self._tag = f"nri-resmgr[{os.getpid()}]"
        self._datagrams = Datagrams(path)

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:  # noqa: ARG002 - a sink's
        """See `Sink.write`."""
        text = f"<{_DAEMON | SEVERITIES[level]}>{self._tag}: {line}"
        return self._datagrams.send(text.encode(errors="replace")[:MOST_BYTES])

    def close(self) -> None:
        """See `Sink.close`."""
        self._datagrams.close()
