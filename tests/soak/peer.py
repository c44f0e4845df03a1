"""The runtime's side of a session, blocking, and back for as long as it takes."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import attrs
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, RUNTIME_METHODS, Call, CallReply, Trunk, nri_pb2

_PATIENCE: Final = 3600.0  # seconds: pausing both for a while loses nothing
_CHUNK: Final = 1 << 16


@attrs.frozen
class Answer:
    """What came back.

    Attributes:
        seconds: From the first byte of the request to the end of the reply.
        body: The message; None for an error.
        why: The error's sentence.
    """

    seconds: float
    body: Any
    why: str


class Peer:
    """Takes one plugin at a time, calls it, and takes its updates.

    Attributes:
        take: Called with unsolicited updates of the plugin, in order with its
            replies.
    """

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(_PATIENCE)
        self._socket: socket.socket | None = None
        self._trunk = Trunk.of_runtime()
        self.take: Callable[[Iterable[nri_pb2.ContainerUpdate]], None] = _ignore
        self._arrived: deque[Any] = deque()

    def accept(self) -> None:
        """Take the plugin, and configure it."""
        self._trunk = Trunk.of_runtime()
        self._socket, _ = self._listener.accept()
        self._socket.settimeout(_PATIENCE)
        self._arrived.clear()
        while not isinstance(self._next(), Call):
            pass
        self.call(
            "Configure",
            nri_pb2.ConfigureRequest(
                runtime_name="containerd",
                runtime_version="v2.4.0",
                NRI_version="v0.12.1",
                registration_timeout=5000,
                request_timeout=2000,
            ),
        )

    def call(self, method: str, request: Message) -> Answer:
        """Call the plugin."""
        assert self._socket is not None
        found = PLUGIN_METHODS[method]
        payload = request.SerializeToString()
        stream_id, data = self._trunk.call(found, payload, timeout=2)
        begun = time.perf_counter()
        self._socket.sendall(data)
        while True:
            event = self._next()
            if isinstance(event, CallReply) and event.stream_id == stream_id:
                return self._answer(found, event, time.perf_counter() - begun)

    def settle(self, seconds: float) -> None:
        """Take what the plugin says on its own, until it is silent for so long."""
        assert self._socket is not None
        while self._arrived or select.select([self._socket], [], [], seconds)[0]:
            self._next()

    def hang_up(self) -> None:
        """End the session."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """End everything."""
        self.hang_up()
        self._listener.close()

    def _answer(self, method: Any, reply: CallReply, seconds: float) -> Answer:
        if reply.code:
            return Answer(seconds, None, reply.message)
        return Answer(seconds, method.response.FromString(reply.payload), "")

    def _next(self) -> Any:
        """Wait for what comes next; the plugin's calls are answered at once."""
        assert self._socket is not None
        while not self._arrived:
            if not (data := self._socket.recv(_CHUNK)):
                raise EOFError("the plugin hung up")
            self._arrived.extend(self._trunk.receive_data(data))
        event = self._arrived.popleft()
        if isinstance(event, Call):
            self._serve(event)
        return event

    def _serve(self, call: Call) -> None:
        assert self._socket is not None
        method = RUNTIME_METHODS[call.method]
        request: Any = method.request.FromString(call.payload)
        if call.method == "UpdateContainers":
            self.take(request.update)
        reply = method.response().SerializeToString()
        with contextlib.suppress(BrokenPipeError):
            self._socket.sendall(self._trunk.reply(call.stream_id, reply))


def _ignore(_: Iterable[nri_pb2.ContainerUpdate]) -> None:
    """Take nothing."""
