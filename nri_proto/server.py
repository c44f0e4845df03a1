"""The server side of ttRPC: bytes to calls, replies to bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from nri_proto._gen import ttrpc_pb2
from nri_proto.codes import Code
from nri_proto.errors import StreamNotOpen
from nri_proto.frames import MAX_DATA_IN, Frame, FrameReader, FrameType, encode_frame

# A runtime makes one call at a time. The limit bounds the memory that a peer can use by
# calls without waiting for answers.
MAX_OPEN_CALLS: Final = 1024

# A name in a request, or the text of a handler's exception, may exceed any frame.
_MAX_MESSAGE: Final = 64 << 10  # bytes of an error's text

_NANOSECONDS: Final = 1_000_000_000

# Module variables, because Python 3.11 needs 0.2 µs to read a member of an enumeration.
_REQUEST, _RESPONSE, _DATA = FrameType.REQUEST, FrameType.RESPONSE, FrameType.DATA


class Call(msgspec.Struct, frozen=True):
    """A call of a method that this side serves.

    Attributes:
        stream_id: Identifies the call in `ServerConnection.reply`.
        service: Full name, ``nri.pkg.api.v1alpha1.Plugin``.
        method: Bare name, ``CreateContainer``.
        payload: The serialized request message.
        timeout: Seconds that the client waits; None without a limit, negative if the
            deadline had passed before the client sent the call.
        metadata: Header pairs, keys may repeat.
    """

    stream_id: int
    service: str
    method: str
    payload: bytes
    timeout: float | None = None
    metadata: tuple[tuple[str, str], ...] = ()


class RejectedCall(msgspec.Struct, frozen=True):
    """An invalid call, to be answered with an error on its own stream."""

    stream_id: int
    code: Code
    message: str


class ServerConnection:
    """Serves the unary methods of some services on one connection.

    An invalid call is an event, because ttRPC answers it and the connection goes on:
    even ids, ids used twice, oversize frames, unknown methods. Unknown frame types are
    ignored.

    Source:
        ttrpc, PROTOCOL.md and server.go.
    """

    def __init__(self, services: Mapping[str, Collection[str]]) -> None:
        self._services = services
        self._frames = FrameReader()
        self._last_id = 0
        # Number of answers to send by stream: an id used twice gets two.
        self._unanswered: dict[int, int] = {}

    @property
    def is_idle(self) -> bool:
        """True if the next byte begins a frame."""
        return self._frames.is_idle

    def receive_data(self, data: bytes) -> list[Call | RejectedCall]:
        """Process bytes from the peer, cut anywhere; return the events.

        Each event must be answered with exactly one `reply` or `refuse`.
        """
        events = map(self.receive_frame, self._frames.receive_data(data))
        return [event for event in events if event is not None]

    def receive_frame(self, frame: Frame) -> Call | RejectedCall | None:
        """Process a whole frame while idle; return the event if there is one."""
        is_request = frame.type == _REQUEST
        event = self._on_request(frame) if is_request else self._on_other(frame)
        if event is not None:
            self._unanswered[event.stream_id] = (
                self._unanswered.get(event.stream_id, 0) + 1
            )
        return event

    def reply(self, stream_id: int, payload: bytes) -> bytes:
        """Answer a call with a serialized message.

        An empty message becomes an empty envelope, as Go's server sends it.

        Raises:
            MessageTooLarge: Over 4 MiB; the call is still open for an error.
            StreamNotOpen: The stream has no open call.
        """
        if not payload:
            return self._settle(stream_id, b"")
        envelope = ttrpc_pb2.Response(payload=payload)
        return self._settle(stream_id, envelope.SerializeToString())

    def refuse(self, stream_id: int, code: int, message: str) -> bytes:
        """Answer a call with an error instead of a message.

        Characters of *message* that are not valid in UTF-8 become ``?``, and it is cut
        to 64 KiB.

        Raises:
            StreamNotOpen: The stream has no open call.
            ValueError: *code* is `Code.OK`, which the peer would take for success.
        """
        if code == Code.OK:
            raise ValueError(f"{code:d} is no error")
        # An exception's text may hold undecodable file names (surrogates).
        text = message.encode("utf-8", "replace")[:_MAX_MESSAGE]
        status = ttrpc_pb2.Status(code=code, message=text.decode("utf-8", "ignore"))
        envelope = ttrpc_pb2.Response(status=status)
        return self._settle(stream_id, envelope.SerializeToString())

    def _settle(self, stream_id: int, data: bytes) -> bytes:
        if stream_id not in self._unanswered:
            raise StreamNotOpen(stream_id)
        frame = encode_frame(stream_id, _RESPONSE, data)
        if others := self._unanswered.pop(stream_id) - 1:
            self._unanswered[stream_id] = others
        return frame

    def _on_other(self, frame: Frame) -> RejectedCall | None:
        if frame.type == _DATA and frame.stream_id not in self._unanswered:
            return _invalid(frame, f"StreamID {frame.stream_id} no longer active")
        return None

    def _on_request(self, frame: Frame) -> Call | RejectedCall:
        stream_id = frame.stream_id
        if stream_id % 2 == 0:
            return _invalid(frame, "StreamID must be odd for client initiated streams")
        if stream_id <= self._last_id:
            return _invalid(frame, "StreamID cannot be re-used and must increment")
        self._last_id = stream_id
        if frame.data is None:
            message = (
                f"message length {frame.size} exceed maximum message size "
                f"of {MAX_DATA_IN}"
            )
            return RejectedCall(stream_id, Code.RESOURCE_EXHAUSTED, message)
        if len(self._unanswered) >= MAX_OPEN_CALLS:
            message = f"more than {MAX_OPEN_CALLS} calls wait for an answer"
            return RejectedCall(stream_id, Code.RESOURCE_EXHAUSTED, message)
        return self._open(stream_id, frame.data)

    def _open(self, stream_id: int, data: bytes) -> Call | RejectedCall:
        try:
            request = ttrpc_pb2.Request.FromString(data)
        except DecodeError as error:
            message = f"unmarshal request error: {error}"
            return RejectedCall(stream_id, Code.INVALID_ARGUMENT, message)
        service, method = request.service, request.method
        if (methods := self._services.get(service)) is None:
            return RejectedCall(stream_id, Code.UNIMPLEMENTED, f"service {service}")
        if method not in methods:
            return RejectedCall(stream_id, Code.UNIMPLEMENTED, f"method {method}")
        nanoseconds = request.timeout_nano
        timeout = nanoseconds / _NANOSECONDS if nanoseconds else None
        pairs = request.metadata
        metadata = tuple([(one.key, one.value) for one in pairs]) if pairs else ()
        return Call(stream_id, service, method, request.payload, timeout, metadata)


def _invalid(frame: Frame, message: str) -> RejectedCall:
    return RejectedCall(frame.stream_id, Code.INVALID_ARGUMENT, message)
