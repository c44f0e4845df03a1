"""A plugin of plain blocking sockets that sends what a test passes to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Self, TypeAlias

from google.protobuf.message import Message

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    Trunk,
    nri_pb2,
)

# A message is the reply, a string an error, None silence.
Answer: TypeAlias = Callable[[Message], Message | str | None]


class Peer:
    """Registers and answers in a thread of its own, until end of file."""

    def __init__(
        self,
        connected: socket.socket,
        name: str = "py",
        index: str = "10",
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        self.requests: list[Message] = []
        self.replies: list[CallReply] = []
        self.received = b""
        self.mask = 0
        self._socket = connected
        self._changed = threading.Condition()
        self._trunk = Trunk.of_plugin()
        self._answers = dict(answers or {})
        self.register(name, index)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @classmethod
    def connect(
        cls,
        path: Path,
        name: str = "py",
        index: str = "10",
        answers: Mapping[str, Answer] | None = None,
    ) -> Self:
        """Connect to a runtime's socket and register."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.connect(str(path))
        return cls(connected, name, index, answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def register(self, name: str, index: str) -> None:
        """Write RegisterPlugin."""
        self.call(
            "RegisterPlugin",
            nri_pb2.RegisterPluginRequest(plugin_name=name, plugin_idx=index),
        )

    def join(self) -> None:
        """Wait until the runtime hangs up."""
        self._thread.join()

    def shut_down(self) -> None:
        """End the connection; answers may do that."""
        with contextlib.suppress(OSError):  # the runtime may have been first
            self._socket.shutdown(socket.SHUT_RDWR)

    def call(self, method: str, request: Message) -> None:
        """Write a call of the Runtime service; its reply goes to `replies`."""
        payload = request.SerializeToString()
        _, data = self._trunk.call(RUNTIME_METHODS[method], payload)
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write raw bytes."""
        self._socket.sendall(data)

    def hang_up(self) -> None:
        """End the connection and the thread."""
        self.shut_down()
        self._thread.join()
        self._socket.close()

    @property
    def is_connected(self) -> bool:
        """Whether no end of file has come."""
        return self._thread.is_alive()

    async def wait_disconnected(self) -> None:
        """Wait for end of file."""
        await asyncio.to_thread(self._thread.join, 5)
        assert not self.is_connected

    async def wait_replies(self, count: int) -> None:
        """Wait until so many replies to our calls have come."""
        assert await asyncio.to_thread(self._wait, self.replies, count)

    async def wait_requests(self, count: int) -> None:
        """Wait until so many requests have come."""
        assert await asyncio.to_thread(self._wait, self.requests, count)

    def calls(self) -> list[str]:
        """Name the request messages that came, in order."""
        return [type(request).__name__ for request in self.requests]

    def _wait(self, things: Sized, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(things) >= count, 5)

    def _serve(self) -> None:
        try:
            while data := self._socket.recv(1 << 16):
                self.received += data
                for event in self._trunk.receive_data(data):
                    self._take(event)
        except OSError:
            return

    def _take(self, event: object) -> None:
        match event:
            case CallReply():
                with self._changed:
                    self.replies.append(event)
                    self._changed.notify_all()
            case Call(stream_id, _, method_name):
                method = PLUGIN_METHODS[method_name]
                request = method.request.FromString(event.payload)
                with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                answer: Message | str | None = method.response()
                if method_name in self._answers:
                    answer = self._answers[method_name](request)
                elif isinstance(answer, nri_pb2.SynchronizeResponse):
                    answer.more = request.more  # type: ignore[attr-defined]  # by the method's table
                self._answer(stream_id, answer)

    def _answer(self, stream_id: int, answer: Message | str | None) -> None:
        match answer:
            case str() if answer == "unimplemented":
                data = self._trunk.refuse(stream_id, 12, "method unknown")
            case str():
                data = self._trunk.refuse(stream_id, 2, answer)
            case Message():
                data = self._trunk.reply(stream_id, answer.SerializeToString())
            case None:
                return
        with contextlib.suppress(OSError):  # what the runtime wrote is still to read
            self.write(data)
