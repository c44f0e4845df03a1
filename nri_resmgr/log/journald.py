"""Log lines to systemd's journal, with separate fields."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Final

from nri_resmgr.log.datagrams import Datagrams
from nri_resmgr.log.syslog import MOST_BYTES, SEVERITIES

JOURNALD_SOCKET: Final = "/run/systemd/journal/socket"

IDENTIFIER: Final = "nri-resmgr"
PREFIX: Final = "NRI_RESMGR_"

# A name has at most 64 of these characters, a letter first.
_ILLEGAL: Final = re.compile("[^A-Z0-9_]")
_LONGEST_NAME: Final = 64


class Journald:
    """Sends each line as one datagram of fields; without a reader it is dropped.

    ``journalctl NRI_RESMGR_CONTAINER=...`` then finds a container's lines.

    Source:
        systemd, docs/JOURNAL_NATIVE_PROTOCOL.md; systemd.journal-fields(7).
    """

    has_clock: bool = True
    has_fields: bool = True

    def __init__(self, path: str = JOURNALD_SOCKET) -> None:
        self._datagrams = Datagrams(path)

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:
        """See `Sink.write`."""
        standard = {
            "PRIORITY": str(SEVERITIES[level]),
            "SYSLOG_IDENTIFIER": IDENTIFIER,
            "MESSAGE": line[:MOST_BYTES],
        }
        named = {_name(key): str(value)[:MOST_BYTES] for key, value in fields.items()}
        return self._datagrams.send(b"".join(map(_entry, (standard | named).items())))

    def close(self) -> None:
        """See `Sink.close`."""
        self._datagrams.close()


def _name(key: str) -> str:
    return PREFIX + _ILLEGAL.sub("_", key.upper())[: _LONGEST_NAME - len(PREFIX)]


def _entry(field: tuple[str, str]) -> bytes:
    name, data = field[0].encode(), field[1].encode(errors="replace")
    if b"\n" in data:
        return b"%b\n%b%b\n" % (name, struct.pack("<Q", len(data)), data)
    return b"%b=%b\n" % (name, data)
