"""A runtime's side as lean as it gets: blocking, one plugin, no checks.

The client's own cost is part of every figure, so it does as little as it can.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from nri_proto import PLUGIN_METHODS, Call, Reply, Trunk
from nri_proto.trunk import Event

EventT = TypeVar("EventT", bound=Event)


class Peer:
    """Listens on *path*, takes one plugin, calls it."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._trunk = Trunk.of_runtime()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            self._socket.close()
        self._listener.close()

    def accept(self) -> float:
        """Take the plugin and its registration; return when that came."""
        self._socket, _ = self._listener.accept()
        register = self._next(Call)
        registered = time.perf_counter()
        self._socket.sendall(self._trunk.reply(register.stream_id, b""))
        self.call(
            "Configure",
            PLUGIN_METHODS["Configure"]
            .request(
                runtime_name="containerd",
                runtime_version="v2.4.0",
                NRI_version="v0.12.2",
                registration_timeout=5000,
                request_timeout=2000,
            )
            .SerializeToString(),
        )
        return registered

    def call(self, method: str, payload: bytes) -> float:
        """Call the plugin; return the seconds from the first byte to the reply.

        Raises:
            AssertionError: It answered an error; the figure would mean nothing.
        """
        assert self._socket is not None
        start = time.perf_counter()
        _, data = self._trunk.call(PLUGIN_METHODS[method], payload, timeout=2.0)
        self._socket.sendall(data)
        reply = self._next(Reply)
        seconds = time.perf_counter() - start
        assert reply.code == 0, reply.message
        return seconds

    def _next(self, kind: type[EventT]) -> EventT:
        assert self._socket is not None
        while data := self._socket.recv(1 << 18):
            for event in self._trunk.receive_data(data):
                if isinstance(event, kind):
                    return event
        raise EOFError("the plugin hung up")
