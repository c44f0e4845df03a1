"""HTTP/2 with a bound for each gRPC message that is received.

grpclib reads as many bytes as a message announces, up to 4 GiB.
"""

from __future__ import annotations

from asyncio import BaseTransport
from typing import Final

from grpclib.protocol import AbstractHandler, Connection, EventsProcessor, H2Protocol
from h2.events import DataReceived, StreamEnded, StreamReset

LARGEST_MESSAGE: Final = 16 << 20
"""Bytes: the kubelet's own bound for what it sends."""

# Frames of a message of the largest size are 1024; each costs an object.
_MOST_FRAMES: Final = 16 << 10

_PREFIX: Final = 5  # bytes: whether compressed, and the length


class _Framing:
    """Where the messages of a stream begin."""

    def __init__(self) -> None:
        self._prefix = b""
        self._left = 0
        self._frames = 0

    def admits(self, data: bytes, largest: int) -> bool:
        """Return whether the next bytes of the stream are within the bounds."""
        self._frames += 1
        at, end = 0, len(data)
        while at < end:
            if self._left:
                step = min(self._left, end - at)
                self._left -= step
                at += step
            else:
                step = min(_PREFIX - len(self._prefix), end - at)
                self._prefix += data[at : at + step]
                at += step
                if len(self._prefix) == _PREFIX:
                    self._left = int.from_bytes(self._prefix[1:], "big")
                    self._prefix, self._frames = b"", 1
                    if self._left > largest:
                        return False
        return self._frames <= _MOST_FRAMES


class _BoundedProcessor(EventsProcessor):
    largest = LARGEST_MESSAGE
    too_large = False

    def __init__(self, handler: AbstractHandler, connection: Connection) -> None:
        super().__init__(handler, connection)
        self._framings: dict[int, _Framing] = {}

    def process_data_received(self, event: DataReceived) -> None:
        framing = self._framings.setdefault(event.stream_id, _Framing())
        if framing.admits(event.data, self.largest):
            super().process_data_received(event)
        else:
            self.too_large = True
            self.close("a message is larger than the bound")

    def process_stream_ended(self, event: StreamEnded) -> None:
        self._framings.pop(event.stream_id, None)
        super().process_stream_ended(event)

    def process_stream_reset(self, event: StreamReset) -> None:
        self._framings.pop(event.stream_id, None)
        super().process_stream_reset(event)


class BoundedProtocol(H2Protocol):
    """A connection that is closed when a message exceeds `LARGEST_MESSAGE`.

    It is closed as well where the peer does not speak HTTP/2: whatever arrives, nothing
    is raised into the event loop.
    """

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin the connection."""
        super().connection_made(transport)
        self.processor = _BoundedProcessor(self.handler, self.connection)

    def data_received(self, data: bytes) -> None:
        """Process what has arrived."""
        try:
            super().data_received(data)
        # The edge: h2 and grpclib raise errors of many kinds for frames that no
        # kubelet sends, such as KeyError and NotImplementedError.
        except Exception:  # noqa: BLE001
            self.processor.close("not HTTP/2 as gRPC uses it")
