"""The NRI wire protocol without I/O: ttRPC, the connection multiplexer, the messages.

Bytes go in, events come out; no code here opens a socket, waits or logs. The classes
work with asyncio, with threads and in tests. `ServerConnection` and `ClientConnection`
are a complete ttRPC for unary calls and can be used without NRI.

Read first: `trunk` (one end of a session), then `server` and `client` (ttRPC), `frames`
and `mux` (the two layers of framing). `events`, `levels` and `methods` are tables.

A ttRPC message that is too long is refused, and the connection goes on; a frame of the
multiplexer that is too long is an error of the peer, after which nothing more is read.
"""

from nri_proto._gen import nri_pb2
from nri_proto.client import CallReply, ClientConnection, Stray
from nri_proto.codes import Code
from nri_proto.errors import (
    LocalProtocolError,
    MessageTooLarge,
    ProtocolError,
    RemoteProtocolError,
    StreamIdsExhausted,
    StreamNotOpen,
    TrunkFrameTooLarge,
)
from nri_proto.events import (
    ALL_EVENTS,
    STATE_CHANGES,
    Event,
    events_of,
    mask_of,
    parse_mask,
)
from nri_proto.levels import NriLevel, infer_level
from nri_proto.methods import PLUGIN_METHODS, RUNTIME_METHODS, Method
from nri_proto.server import Call, RejectedCall, ServerConnection
from nri_proto.trunk import Trunk

__all__ = [
    "ALL_EVENTS",
    "PLUGIN_METHODS",
    "RUNTIME_METHODS",
    "STATE_CHANGES",
    "Call",
    "CallReply",
    "ClientConnection",
    "Code",
    "Event",
    "LocalProtocolError",
    "MessageTooLarge",
    "Method",
    "NriLevel",
    "ProtocolError",
    "RejectedCall",
    "RemoteProtocolError",
    "ServerConnection",
    "Stray",
    "StreamIdsExhausted",
    "StreamNotOpen",
    "Trunk",
    "TrunkFrameTooLarge",
    "events_of",
    "infer_level",
    "mask_of",
    "nri_pb2",
    "parse_mask",
]
