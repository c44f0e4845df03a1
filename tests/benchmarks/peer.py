"""The runtime's side of the benchmarks, as lean as possible: blocking, one plugin.

The client's own cost is part of every figure, so between the request's first byte
and the reply's last it does nothing that can be done before or afterwards.
"""

from __future__ import annotations

import socket
import struct
import time
from functools import lru_cache
from pathlib import Path
from typing import Final, Self

from nri_proto import PLUGIN_METHODS, Call, Trunk
from nri_proto._gen import ttrpc_pb2
from nri_proto.frames import HEADER, FrameType, encode_frame
from nri_proto.mux import HEADER as TRUNK_HEADER
from nri_proto.mux import MAX_FIRST_FRAME, Connection, trunk_frames

_TIMEOUT: Final = 2_000_000_000  # nanoseconds
_STREAM_ID: Final = struct.Struct(">I")
_STREAM_ID_AT: Final = TRUNK_HEADER.size + 4
_HEADERS: Final = struct.Struct(">IIIIBB")  # of the trunk, then of ttRPC


class Peer:
    """Listens on *path*, takes one plugin, calls it.

    Attributes:
        reply: The reply to the last call.
    """

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._socket: socket.socket | None = None
        self._input = memoryview(bytearray(1 << 20))
        self._stream_id = -1
        self.reply = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
        self._listener.close()

    def accept(self, document: str = "") -> tuple[float, float]:
        """Take the plugin and its registration, and configure it.

        Args:
            document: Content of the plugin's drop-in file.

        Returns:
            Times of its registration and of its reply to Configure.
        """
        self._socket, _ = self._listener.accept()
        trunk = Trunk.of_runtime()
        register = self._first_call(trunk)
        registered = time.perf_counter()
        self._socket.sendall(trunk.reply(register.stream_id, b""))
        self.call(
            "Configure",
            PLUGIN_METHODS["Configure"]
            .request(
                config=document,
                runtime_name="containerd",
                runtime_version="v2.4.0",
                NRI_version="v0.12.2",
                registration_timeout=5000,
                request_timeout=2000,
            )
            .SerializeToString(),
        )
        return registered, time.perf_counter()

    def call(self, method: str, payload: bytes) -> float:
        """Call the plugin; return the seconds from the first byte to the reply.

        Raises:
            AssertionError: It replied with an error or another message, so the
                figure would mean nothing.
        """
        assert self._socket is not None
        self._stream_id += 2
        request = _request(method, payload)
        _STREAM_ID.pack_into(request, _STREAM_ID_AT, self._stream_id)
        start = time.perf_counter()
        self._socket.sendall(request)
        size = self._socket.recv_into(self._input)
        while size < _HEADERS.size or size < self._announced():
            size += self._receive(size)
        seconds = time.perf_counter() - start
        self._check(size)
        return seconds

    def _receive(self, at: int) -> int:
        assert self._socket is not None
        if not (count := self._socket.recv_into(self._input[at:])):
            raise EOFError("the plugin hung up")
        return count

    def _announced(self) -> int:
        """Return the bytes of the message that has begun to arrive."""
        message: int = HEADER.size + _HEADERS.unpack_from(self._input)[2]
        frames = 1 if message <= MAX_FIRST_FRAME else 2
        return message + frames * TRUNK_HEADER.size

    def _check(self, size: int) -> None:
        connection, first, _, stream_id, kind, _ = _HEADERS.unpack_from(self._input)
        assert (connection, stream_id, kind, size) == (
            Connection.PLUGIN,
            self._stream_id,
            FrameType.RESPONSE,
            self._announced(),
        )
        begin, end = _HEADERS.size, TRUNK_HEADER.size + first
        rest = self._input[end + TRUNK_HEADER.size : size]
        data = bytes(self._input[begin:end]) + bytes(rest)
        response = ttrpc_pb2.Response.FromString(data)
        assert response.status.code == 0, response.status.message
        self.reply = response.payload

    def _first_call(self, trunk: Trunk) -> Call:
        assert self._socket is not None
        while data := self._socket.recv(1 << 16):
            for event in trunk.receive_data(data):
                if isinstance(event, Call):
                    return event
        raise EOFError("the plugin hung up")


@lru_cache(maxsize=4)
def _request(method: str, payload: bytes) -> bytearray:
    """Make the bytes of a request; the stream id is to be put in."""
    data = ttrpc_pb2.Request(
        service=PLUGIN_METHODS[method].service,
        method=method,
        payload=payload,
        timeout_nano=_TIMEOUT,
    ).SerializeToString()
    message = encode_frame(0, FrameType.REQUEST, data)
    return bytearray(trunk_frames(Connection.PLUGIN, message))
