"""The multiplexer that carries several ttRPC connections on one socket.

A trunk frame is a connection id, a length and that many bytes. Connections are not
opened or closed on the wire.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Collection
from typing import Final

from nri_proto.errors import TrunkFrameTooLarge

HEADER: Final = struct.Struct(">II")  # connection id, payload length

# Go reads a ttRPC header through a buffer of 4096 bytes that must hold the whole trunk
# frame: a larger first frame ends the session (nri, pkg/net/multiplex).
MAX_FIRST_FRAME: Final = 4096

# NRI before 0.7 sends frames up to 1 << 24 bytes, later ones 4 MiB + 10.
MAX_FRAME: Final = (16 << 20) + 10


class Connection(enum.IntEnum):
    """The logical connections of NRI, by the service on them."""

    PLUGIN = 1
    RUNTIME = 2


def trunk_frames(connection: int, message: bytes) -> bytes:
    """Wrap one ttRPC message, header included, into trunk frames.

    Go's reader loses the connection, or panics, if a frame has parts of two messages,
    or if a message starts in a frame of more than 4096 bytes. So a message becomes one
    frame, or two: its first 4096 bytes, then the rest.
    """
    size = len(message)
    if size <= MAX_FIRST_FRAME:
        return HEADER.pack(connection, size) + message
    head, rest = message[:MAX_FIRST_FRAME], message[MAX_FIRST_FRAME:]
    first, second = (HEADER.pack(connection, len(part)) for part in (head, rest))
    return b"".join((first, head, second, rest))


class Demultiplexer:
    """Splits the trunk into the bytes of each connection."""

    def __init__(self, connections: Collection[int]) -> None:
        self._open = frozenset(connections)
        self._header = bytearray()
        self._connection = 0
        self._missing = 0  # bytes of the current frame that are not received yet

    @property
    def is_idle(self) -> bool:
        """True if the next byte begins a frame."""
        return not (self._missing or self._header)

    def receive_data(self, data: bytes) -> list[tuple[int, bytes]]:
        """Process bytes from the socket, cut anywhere.

        Frames are passed on in pieces, so this class never keeps more than an
        incomplete header.

        Returns:
            Pairs of an open connection and bytes for it, in order. Bytes for
            other connections are dropped, as Go's side does.

        Raises:
            TrunkFrameTooLarge: A frame for an open connection is longer than
                any NRI release sends.
        """
        pieces: list[tuple[int, bytes]] = []
        at = 0
        end = len(data)
        while at < end:
            if not self._missing:
                at = self._read_header(data, at)
                continue
            piece = data[at : at + self._missing]
            self._missing -= len(piece)
            at += len(piece)
            if self._connection in self._open:
                pieces.append((self._connection, piece))
        return pieces

    def _read_header(self, data: bytes, at: int) -> int:
        end = at + HEADER.size - len(self._header)
        header = data[at:end]
        if self._header or len(header) < HEADER.size:  # received in parts
            self._header += header
            if len(self._header) < HEADER.size:
                return len(data)
            header = bytes(self._header)
            self._header.clear()
        self._connection, self._missing = HEADER.unpack(header)
        if self._missing > MAX_FRAME and self._connection in self._open:
            raise TrunkFrameTooLarge(self._connection, self._missing, MAX_FRAME)
        return end
