"""ttRPC frames: a header of ten bytes, then data."""

from __future__ import annotations

import enum
import struct
from typing import Final

import msgspec

from nri_proto.errors import MessageTooLarge

HEADER: Final = struct.Struct(">IIBB")  # data length, stream id, type, flags

# ttrpc, channel.go: both directions of every release since 1.2.6.
MAX_DATA_OUT: Final = 4 << 20

# Runtimes with NRI < 0.7 and ttrpc < 1.2.6 send Synchronize messages up to the
# multiplexer's old limit of 16 MiB, which only Go's stub refuses.
MAX_DATA_IN: Final = 16 << 20


class FrameType(enum.IntEnum):
    """Type of a frame; receivers ignore all other numbers."""

    REQUEST = 1
    RESPONSE = 2
    DATA = 3


class Frame(msgspec.Struct, frozen=True):
    """One received frame.

    Attributes:
        stream_id: Odd and increasing if the client follows the protocol.
        type: A `FrameType`, or an unknown number.
        data: The envelope; None if it exceeds `MAX_DATA_IN` and is discarded.
        size: The length in its header, in bytes.
    """

    stream_id: int
    type: int
    data: bytes | None
    size: int


def encode_frame(stream_id: int, frame_type: FrameType, data: bytes) -> bytes:
    """Build a frame without flags, as all unary calls use.

    Raises:
        MessageTooLarge: The data exceeds 4 MiB; sending it would end the whole
            connection, not just this call.
    """
    if len(data) > MAX_DATA_OUT:
        raise MessageTooLarge(len(data), MAX_DATA_OUT)
    return HEADER.pack(len(data), stream_id, frame_type, 0) + data


class FrameReader:
    """Reads frames from a byte stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._discard = 0  # bytes of an oversize frame that are not received yet

    @property
    def is_idle(self) -> bool:
        """True if the next byte begins a frame."""
        return not (self._buffer or self._discard)

    def receive_data(self, data: bytes) -> list[Frame]:
        """Process bytes of one connection; return the completed frames.

        It never keeps more than one frame of `MAX_DATA_IN`.
        """
        if self._discard:
            skipped = min(self._discard, len(data))
            self._discard -= skipped
            data = data[skipped:]
        self._buffer += data
        frames = []
        while (frame := self._take_frame()) is not None:
            frames.append(frame)
        return frames

    def _take_frame(self) -> Frame | None:
        if len(self._buffer) < HEADER.size:
            return None
        size, stream_id, frame_type, _flags = HEADER.unpack_from(self._buffer)
        end = HEADER.size + size
        if size > MAX_DATA_IN:
            self._discard = max(0, end - len(self._buffer))
            del self._buffer[:end]
            return Frame(stream_id, frame_type, None, size)
        if len(self._buffer) < end:
            return None
        frame_data = bytes(memoryview(self._buffer)[HEADER.size : end])
        del self._buffer[:end]
        return Frame(stream_id, frame_type, frame_data, size)
