"""One end of an NRI session: a server and a client on one multiplexer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, TypeAlias

from nri_proto import frames, mux
from nri_proto.client import CallReply, ClientConnection, Stray
from nri_proto.frames import MAX_DATA_IN, Frame
from nri_proto.methods import (
    PLUGIN_METHODS,
    PLUGIN_SERVICE,
    RUNTIME_METHODS,
    RUNTIME_SERVICE,
    Method,
)
from nri_proto.mux import Connection, Demultiplexer, trunk_frames
from nri_proto.server import Call, RejectedCall, ServerConnection

# Header of a trunk frame, followed by the header of the ttRPC frame in it.
_HEADERS: Final = Struct(mux.HEADER.format + frames.HEADER.format[1:])

TrunkEvent: TypeAlias = Call | RejectedCall | CallReply | Stray


class Trunk:
    """Converts received bytes to events, and calls and replies to bytes.

    The bytes that methods return must be written to the socket whole and in the order
    of the method calls: that keeps one message per frame and stream ids in order.
    """

    def __init__(self, serves: Connection, methods: Mapping[str, Method]) -> None:
        service = PLUGIN_SERVICE if serves is Connection.PLUGIN else RUNTIME_SERVICE
        self._serves = serves
        self._calls = Connection(3 - serves)
        self._demultiplexer = Demultiplexer(tuple(Connection))
        self._server = ServerConnection({service: methods.keys()})
        self._client = ClientConnection()
        self._is_idle = True  # the next byte begins a frame in a frame

    @classmethod
    def of_plugin(cls) -> Trunk:
        """Create the plugin's end: it serves Plugin and calls Runtime."""
        return cls(Connection.PLUGIN, PLUGIN_METHODS)

    @classmethod
    def of_runtime(cls) -> Trunk:
        """Create the runtime's end: it serves Runtime and calls Plugin."""
        return cls(Connection.RUNTIME, RUNTIME_METHODS)

    def receive_data(self, data: bytes) -> list[TrunkEvent]:
        """Process bytes from the socket, cut anywhere; return the events.

        Raises:
            RemoteProtocolError: The peer broke the framing.
        """
        if (frame := self._single_frame(data)) is not None:
            event = self._server.receive_frame(frame)
            return [] if event is None else [event]
        self._is_idle = False  # also after an error
        events: list[TrunkEvent] = []
        for connection, piece in self._demultiplexer.receive_data(data):
            if connection == self._serves:
                events += self._server.receive_data(piece)
            else:
                events += self._client.receive_data(piece)
        self._is_idle = self._demultiplexer.is_idle and self._server.is_idle
        return events

    def call(
        self,
        method: Method,
        payload: bytes,
        *,
        timeout: float | None = None,
        metadata: Iterable[tuple[str, str]] = (),
    ) -> tuple[int, bytes]:
        """Open a call; see `ClientConnection.call`."""
        stream_id, message = self._client.call(
            method.service, method.name, payload, timeout=timeout, metadata=metadata
        )
        return stream_id, trunk_frames(self._calls, message)

    def reply(self, stream_id: int, payload: bytes) -> bytes:
        """Answer a call; see `ServerConnection.reply`."""
        return trunk_frames(self._serves, self._server.reply(stream_id, payload))

    def refuse(self, stream_id: int, code: int, message: str) -> bytes:
        """Answer a call with an error; see `ServerConnection.refuse`."""
        return trunk_frames(self._serves, self._server.refuse(stream_id, code, message))

    def abandon(self) -> tuple[int, ...]:
        """Abandon the open calls of this side; see `ClientConnection.abandon`."""
        return self._client.abandon()

    def _single_frame(self, data: bytes) -> Frame | None:
        # Most reads bring exactly one frame for the server in one of the trunk: taking
        # it at once is faster than layer by layer.
        end = len(data)
        if end < _HEADERS.size:
            return None
        connection, length, size, stream_id, kind, _flags = _HEADERS.unpack_from(data)
        if (
            connection != self._serves
            or length != end - mux.HEADER.size
            or size != end - _HEADERS.size
            or size > MAX_DATA_IN
            or not self._is_idle
        ):
            return None
        return Frame(stream_id, kind, data[_HEADERS.size :], size)
