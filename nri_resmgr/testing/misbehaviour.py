"""Wrong things a runtime can be told to do, each on one connection."""

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
    """Moments in a session, in their order.

    Between REGISTERING and CONFIGURING Go's runtime has written Configure and
    then the reply to RegisterPlugin; with `Misbehaviour.reply_first` the other
    way round.
    """

    CONNECTED = enum.auto()  # accepted, nothing read
    REGISTERING = enum.auto()  # RegisterPlugin came, nothing was answered
    REGISTERED = enum.auto()  # RegisterPlugin was answered
    CONFIGURING = enum.auto()  # Configure was written, not answered
    CONFIGURED = enum.auto()  # Configure was answered
    SYNCHRONIZING = enum.auto()  # a Synchronize message was written
    SYNCHRONIZED = enum.auto()  # the last one was answered
    EVENT = enum.auto()  # the request of an event was written


class Misbehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong on one connection; the default is nothing.

    Attributes:
        hang_up: Close the connection at this step.
        fall_silent: Keep the connection, and say nothing from this step on.
        reply_first: Answer RegisterPlugin before Configure is written.
        bytes_per_write: Cut everything that is written into such pieces.
        noise: Raw bytes written before each request: zero-length frames, frames
            of connections or types nobody knows.
        timeout: Seconds told with each request in place of the true ones; may
            be negative.
        empty_chunks: Synchronize messages without content before the real ones.
        oversize: Send messages that a ttRPC client must refuse to send, as the
            runtimes with NRI < 0.7 do.
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
                "a runtime is silent after the handshake by asking nothing"
            )


GOOD: Final = Misbehaviour()

# Legal noise that a plugin has to overlook.
EMPTY_FRAME: Final = bytes.fromhex("00000001 00000000")
FRAME_FOR_NOBODY: Final = bytes.fromhex("00000007 00000003 ffffff")
UNKNOWN_FRAME_TYPE: Final = bytes.fromhex(
    "00000001 0000000c"  # twelve bytes for the Plugin service:
    "00000002 00000001 09 00 ffff"  # a ttRPC frame of type 9
)


def oversize_call(
    trunk: Trunk, method: Method, payload: bytes, timeout: float
) -> tuple[int, bytes]:
    """Open a call however long its message is; as `Trunk.call`."""
    # A short call reserves the stream id; its bytes are thrown away.
    stream_id, _ = trunk.call(method, b"")
    request = ttrpc_pb2.Request(
        service=method.service,
        method=method.name,
        payload=payload,
        timeout_nano=round(timeout * _NANOSECONDS),
    ).SerializeToString()
    header = HEADER.pack(len(request), stream_id, FrameType.REQUEST, 0)
    return stream_id, trunk_frames(Connection.PLUGIN, header + request)
