"""Misbehaviour of the runtime on one connection, to test plugins against."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nri_proto import Method, Trunk
from nri_proto._gen import ttrpc_pb2
from nri_proto.frames import HEADER, FrameType
from nri_proto.mux import Connection, trunk_frames

_NANOSECONDS: Final = 1_000_000_000


class SessionStep(enum.Enum):
    """Steps of a session, in their order.

    Go's runtime writes Configure before the reply to RegisterPlugin; with
    `Misbehaviour.reply_first` the reply is first.
    """

    CONNECTED = enum.auto()  # accepted, nothing was read
    REGISTERING = enum.auto()  # RegisterPlugin was received, not answered
    REGISTERED = enum.auto()  # RegisterPlugin was answered
    CONFIGURING = enum.auto()  # Configure was written, not answered
    CONFIGURED = enum.auto()  # Configure was answered
    SYNCHRONIZING = enum.auto()  # a Synchronize message was written
    SYNCHRONIZED = enum.auto()  # the last one was answered
    EVENT = enum.auto()  # the request of an event was written


class Misbehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """Misbehaviour on one connection; the default is none.

    Attributes:
        hang_up: Close the connection at this step.
        fall_silent: Keep the connection and send nothing from this step on.
        reply_first: Answer RegisterPlugin before Configure is written.
        bytes_per_write: Write all output in pieces of this size.
        noise: Raw bytes written before each request, such as zero-length frames and
            frames of unknown connections or types.
        timeout: Seconds sent with each request instead of the actual timeout; may be
            negative.
        empty_chunks: Number of empty Synchronize messages before the real ones.
        oversize: Send messages that exceed the limit of ttRPC clients, as runtimes with
            NRI < 0.7 do.
    """

    hang_up: SessionStep | None = None
    fall_silent: SessionStep | None = None
    reply_first: bool = False
    bytes_per_write: int | None = None
    noise: bytes = b""
    timeout: float | None = None
    empty_chunks: int = 0
    oversize: bool = False

    def __post_init__(self) -> None:
        if self.fall_silent is SessionStep.EVENT:
            raise ValueError(
                "fall_silent=EVENT has no effect: make no requests instead"
            )


GOOD: Final = Misbehaviour()

# Valid bytes that a plugin must ignore.
EMPTY_FRAME: Final = bytes.fromhex("00000001 00000000")
UNKNOWN_CONNECTION_FRAME: Final = bytes.fromhex("00000007 00000003 ffffff")
UNKNOWN_FRAME_TYPE: Final = bytes.fromhex(
    "00000001 0000000c"  # twelve bytes for the Plugin service:
    "00000002 00000001 09 00 ffff"  # a ttRPC frame of type 9
)


def oversize_call(
    trunk: Trunk, method: Method, payload: bytes, timeout: float
) -> tuple[int, bytes]:
    """Do as `Trunk.call`, without a limit for the size of the message."""
    # A short call reserves the stream id; its bytes are discarded.
    stream_id, _ = trunk.call(method, b"")
    request = ttrpc_pb2.Request(
        service=method.service,
        method=method.name,
        payload=payload,
        timeout_nano=round(timeout * _NANOSECONDS),
    ).SerializeToString()
    header = HEADER.pack(len(request), stream_id, FrameType.REQUEST, 0)
    return stream_id, trunk_frames(Connection.PLUGIN, header + request)
