"""Protocol errors, by the side that caused them.

`LocalProtocolError` is caused by the calling code; nothing was sent.
`RemoteProtocolError` is caused by the peer and ends the connection. An error of the
peer that does not end the connection is an event, not an exception.
"""

from __future__ import annotations

from dataclasses import dataclass


class ProtocolError(Exception):
    """Base of the protocol's errors; only its two branches are raised."""


class LocalProtocolError(ProtocolError):
    """The calling code requested something that the protocol forbids."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the framing; the connection cannot go on."""


@dataclass(eq=False)
class MessageTooLarge(LocalProtocolError):
    """A message does not fit into one ttRPC frame; sizes in bytes."""

    size: int
    limit: int

    def __str__(self) -> str:
        return f"message of {self.size} bytes exceeds the limit of {self.limit}"


@dataclass(eq=False)
class StreamNotOpen(LocalProtocolError):
    """A reply for a stream that has no open call."""

    stream_id: int

    def __str__(self) -> str:
        return f"stream {self.stream_id} has no open call"


class StreamIdsExhausted(LocalProtocolError):
    """All 2**31 client stream ids of this connection were used."""

    def __str__(self) -> str:
        return "no stream id is left: open a new connection"


@dataclass(eq=False)
class TrunkFrameTooLarge(RemoteProtocolError):
    """The peer announced a multiplexer frame larger than any NRI release sends."""

    connection: int
    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"multiplexer frame of {self.size} bytes on connection "
            f"{self.connection} exceeds the limit of {self.limit}"
        )
