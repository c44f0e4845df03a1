"""The client side of ttRPC: calls to bytes, bytes to replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from nri_proto._gen import ttrpc_pb2
from nri_proto.codes import Code
from nri_proto.errors import StreamIdsExhausted
from nri_proto.frames import MAX_DATA_IN, Frame, FrameReader, FrameType, encode_frame

_LAST_ID: Final = (1 << 32) - 1
_NANOSECONDS: Final = 1_000_000_000


class CallReply(msgspec.Struct, frozen=True):
    """The outcome of a call that this side has made.

    Attributes:
        stream_id: As `ClientConnection.call` returned it.
        code: `Code.OK` or an error; a number unknown to `Code` is kept.
        message: The peer's message if *code* is not OK.
        payload: The serialized reply message if *code* is OK.
    """

    stream_id: int
    code: int
    message: str = ""
    payload: bytes = b""


class Stray(msgspec.Struct, frozen=True):
    """A frame that belongs to no open call: a late reply, or garbage."""

    stream_id: int


class ClientConnection:
    """Makes unary calls on one connection.

    Several calls may be open; replies come in any order. When the connection ends,
    `abandon` returns the calls that will never be answered.
    """

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._next_id = 1
        self._open: set[int] = set()

    def call(
        self,
        service: str,
        method: str,
        payload: bytes,
        *,
        timeout: float | None = None,
        metadata: Iterable[tuple[str, str]] = (),
    ) -> tuple[int, bytes]:
        """Open a call.

        The bytes must be written before those of a later call: the peer refuses
        stream ids that do not increase.

        Args:
            service: Full name, ``nri.pkg.api.v1alpha1.Runtime``.
            method: Bare name, ``RegisterPlugin``.
            payload: The serialized request message.
            timeout: Seconds, sent to the peer; the caller must stop waiting itself.
                None is no limit; 0 and less mean that the deadline has passed.
            metadata: Header pairs.

        Returns:
            The stream id and the bytes to write.

        Raises:
            MessageTooLarge: Over 4 MiB; no id was used.
            StreamIdsExhausted: The connection has made 2**31 calls.
        """
        if self._next_id > _LAST_ID:
            raise StreamIdsExhausted
        request = ttrpc_pb2.Request(service=service, method=method, payload=payload)
        if timeout is not None:
            # Zero would mean that there is no limit.
            request.timeout_nano = round(timeout * _NANOSECONDS) or 1
        for key, value in metadata:
            request.metadata.add(key=key, value=value)
        stream_id = self._next_id
        data = request.SerializeToString()
        message = encode_frame(stream_id, FrameType.REQUEST, data)
        self._next_id += 2
        self._open.add(stream_id)
        return stream_id, message

    def receive_data(self, data: bytes) -> list[CallReply | Stray]:
        """Process bytes from the peer, cut anywhere; return the events."""
        return [self._event(frame) for frame in self._frames.receive_data(data)]

    def abandon(self) -> tuple[int, ...]:
        """Abandon all open calls; return their stream ids in order."""
        abandoned = tuple(sorted(self._open))
        self._open.clear()
        return abandoned

    def _event(self, frame: Frame) -> CallReply | Stray:
        if frame.stream_id not in self._open:
            return Stray(frame.stream_id)
        self._open.remove(frame.stream_id)
        if frame.type != FrameType.RESPONSE:
            message = f"frame type {frame.type} on a unary stream"
            return CallReply(frame.stream_id, Code.INTERNAL, message)
        if frame.data is None:
            message = f"reply of {frame.size} bytes exceeds {MAX_DATA_IN}"
            return CallReply(frame.stream_id, Code.RESOURCE_EXHAUSTED, message)
        try:
            response = ttrpc_pb2.Response.FromString(frame.data)
        except DecodeError as error:
            return CallReply(frame.stream_id, Code.INTERNAL, f"broken reply: {error}")
        if code := response.status.code:
            return CallReply(frame.stream_id, code, response.status.message)
        return CallReply(frame.stream_id, Code.OK, payload=response.payload)
