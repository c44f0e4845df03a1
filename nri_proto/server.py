"""The serving half of ttRPC: calls out of bytes, bytes out of replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from nri_proto._gen import ttrpc_pb2
from nri_proto.codes import Code
from nri_proto.errors import StreamNotOpen
from nri_proto.frames import MAX_DATA_IN, Frame, FrameReader, FrameType, encode_frame

# A runtime asks one thing at a time. The limit keeps a peer that never waits for
# its answers from growing our memory.
MAX_OPEN_CALLS: Final = 1024

# Bytes of an error's text. A name out of a request, or the words of a handler's
# exception, may be longer than any frame.
_MAX_MESSAGE: Final = 64 << 10

_NANOSECONDS: Final = 1_000_000_000

# Python 3.11 takes 0.2 µs to read a member off its enumeration.
_REQUEST, _RESPONSE, _DATA = FrameType.REQUEST, FrameType.RESPONSE, FrameType.DATA


class Call(msgspec.Struct, frozen=True):
    """A request for a method we serve.

    Attributes:
        stream_id: Names the call in `ServerConnection.reply`.
        payload: The serialized request message.
        timeout: Seconds the client still waits; None when it set no limit,
            negative when its deadline had passed before it sent.
        metadata: Header pairs, keys may repeat.
    """

    stream_id: int
    service: str
    method: str
    payload: bytes
    timeout: float | None = None
    metadata: tuple[tuple[str, str], ...] = ()


class RejectedCall(msgspec.Struct, frozen=True):
    """An illegal request, to be answered on its own stream with an error."""

    stream_id: int
    code: Code
    message: str


class ServerConnection:
    """Serves the unary methods of some services on one connection.

    A peer's illegal request is a value, because ttRPC answers it and goes on:
    even ids, ids used twice, oversize frames, unknown methods. Frame types of
    the future are ignored.

    Source:
        ttrpc, PROTOCOL.md and server.go.
    """

    def __init__(self, services: Mapping[str, Collection[str]]) -> None:
        self._services = services
        self._frames = FrameReader()
        self._last_id = 0
        # Answers owed by stream: an id used twice is owed two.
        self._owed: dict[int, int] = {}

    @property
    def is_idle(self) -> bool:
        """Whether the next byte begins a frame."""
        return self._frames.is_idle

    def receive_data(self, data: bytes) -> list[Call | RejectedCall]:
        """Take bytes from the peer, however they were cut; return the events.

        Each event owes the peer exactly one `reply` or `refuse`.
        """
        events = map(self.receive_frame, self._frames.receive_data(data))
        return [event for event in events if event is not None]

    def receive_frame(self, frame: Frame) -> Call | RejectedCall | None:
        """Take a frame that came whole, while idle; return the event if it is one."""
        is_request = frame.type == _REQUEST
        event = self._judge_request(frame) if is_request else self._judge_other(frame)
        if event is not None:
            self._owed[event.stream_id] = self._owed.get(event.stream_id, 0) + 1
        return event

    def reply(self, stream_id: int, payload: bytes) -> bytes:
        """Answer a call with a serialized message.

        An empty message makes an empty envelope, as Go's server has it.

        Raises:
            MessageTooLarge: Over 4 MiB; the call is still open for an error.
            StreamNotOpen: Nothing is owed on that stream.
        """
        if not payload:
            return self._settle(stream_id, b"")
        envelope = ttrpc_pb2.Response(payload=payload)
        return self._settle(stream_id, envelope.SerializeToString())

    def refuse(self, stream_id: int, code: int, message: str) -> bytes:
        """Answer a call with an error; nothing else may go with it.

        Any text can be sent: what UTF-8 cannot hold becomes ``?``, and 64 KiB
        are enough.

        Raises:
            StreamNotOpen: Nothing is owed on that stream.
            ValueError: *code* is `Code.OK`, which the peer would take for success.
        """
        if code == Code.OK:
            raise ValueError(f"{code:d} is no error")
        status = ttrpc_pb2.Status(code=code, message=_sendable(message))
        envelope = ttrpc_pb2.Response(status=status)
        return self._settle(stream_id, envelope.SerializeToString())

    def _settle(self, stream_id: int, data: bytes) -> bytes:
        if stream_id not in self._owed:
            raise StreamNotOpen(stream_id)
        frame = encode_frame(stream_id, _RESPONSE, data)
        if others := self._owed.pop(stream_id) - 1:
            self._owed[stream_id] = others
        return frame

    def _judge_other(self, frame: Frame) -> RejectedCall | None:
        if frame.type == _DATA and frame.stream_id not in self._owed:
            return _invalid(frame, f"StreamID {frame.stream_id} no longer active")
        return None

    def _judge_request(self, frame: Frame) -> Call | RejectedCall:
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
        if len(self._owed) >= MAX_OPEN_CALLS:
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


def _sendable(message: str) -> str:
    # An exception's text may hold undecodable file names (surrogates).
    data = message.encode("utf-8", "replace")[:_MAX_MESSAGE]
    return data.decode("utf-8", "ignore")
