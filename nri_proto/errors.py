"""Protocol errors: whose fault it was decides the class.

`LocalProtocolError` is ours to fix, nothing was sent. `RemoteProtocolError` is
the peer's and ends the connection. What a peer may do wrong without losing the
connection is an event, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass


class ProtocolError(Exception):
    """Root of the wire's errors; only its two branches are raised."""


class LocalProtocolError(ProtocolError):
    """We asked for something the protocol forbids; nothing was written."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the framing; the connection cannot go on."""


@dataclass(eq=False)
class MessageTooLarge(LocalProtocolError):
    """A message would not fit into one ttRPC frame."""

    size: int
    limit: int

    def __str__(self) -> str:
        return f"message of {self.size} bytes exceeds the limit of {self.limit}"


@dataclass(eq=False)
class StreamNotOpen(LocalProtocolError):
    """A reply for a stream on which no answer is owed."""

    stream_id: int

    def __str__(self) -> str:
        return f"stream {self.stream_id} waits for no reply"


class StreamIdsExhausted(LocalProtocolError):
    """All 2**31 client stream ids of this connection were used."""

    def __str__(self) -> str:
        return "no stream id is left: open a new connection"


@dataclass(eq=False)
class TrunkFrameTooLarge(RemoteProtocolError):
    """The peer announced a multiplexer frame nobody can mean."""

    connection: int
    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"multiplexer frame of {self.size} bytes on connection "
            f"{self.connection} exceeds the limit of {self.limit}"
        )
