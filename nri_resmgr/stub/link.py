"""The asyncio ring around one end of an NRI session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from google.protobuf.message import DecodeError, Message

from nri_proto import (
    Call,
    CallReply,
    Code,
    MessageTooLarge,
    Method,
    RejectedCall,
    RemoteProtocolError,
    Trunk,
)
from nri_resmgr.log import Logger
from nri_resmgr.stub.errors import CallFailed, CallTimedOut, ConnectionLost

log = Logger(__name__)

# A peer that takes no byte for so long is gone, whatever the socket says.
WRITE_STALL: Final = 10.0  # seconds

# Into a buffer of ours, since asyncio's other way makes one of 256 KiB each time:
# depending on the heap that is a mapping made, shrunk and dropped, 25 µs.
_READ_SIZE: Final = 64 << 10


class Link(asyncio.BufferedProtocol):
    """Feeds a `Trunk` and writes what it gives; the same class on both sides.

    Calls of the peer go to *on_call*, in the order they came. Whoever takes one
    answers it with `reply` or `refuse`, now or later; after the connection is
    lost both do nothing.
    """

    def __init__(self, trunk: Trunk, on_call: Callable[[Call], None]) -> None:
        self._trunk = trunk
        self._on_call = on_call
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, asyncio.Future[CallReply]] = {}
        self._transport: asyncio.Transport | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._fault: str | None = None
        self._input = memoryview(bytearray(_READ_SIZE))
        self.closed: asyncio.Future[str | None] = self._loop.create_future()

    @property
    def is_connected(self) -> bool:
        """Whether the connection was made and has not ended."""
        return self._transport is not None and not self.closed.done()

    async def call(self, method: Method, request: Message, within: float) -> Message:
        """Call the peer and wait for its answer.

        Args:
            method: From `RUNTIME_METHODS` or `PLUGIN_METHODS`.
            request: Its request message.
            within: Seconds; told to the peer, and kept here.

        Returns:
            A message of the method's response class.

        Raises:
            CallFailed: The peer answered an error.
            CallTimedOut: It did not answer in time; a late answer is dropped.
            ConnectionLost: The connection ended first.
            MessageTooLarge: The request is over 4 MiB; nothing was sent.
        """
        if not self.is_connected:
            raise self.lost()
        payload = request.SerializeToString()
        stream_id, data = self._trunk.call(method, payload, timeout=within)
        answer = self._pending[stream_id] = self._loop.create_future()
        self._write(data)
        try:
            async with asyncio.timeout(within):
                reply = await answer
        except TimeoutError:
            raise CallTimedOut(method.name, within) from None
        finally:
            self._pending.pop(stream_id, None)
        if reply.code != Code.OK:
            raise CallFailed(method.name, reply.code, reply.message)
        try:
            return method.response.FromString(reply.payload)
        except DecodeError as error:
            raise CallFailed(method.name, Code.INTERNAL, str(error)) from error

    def reply(self, stream_id: int, message: Message | None = None) -> None:
        """Answer a call; without a message, with an empty one."""
        if self.closed.done():
            return
        payload = b"" if message is None else message.SerializeToString()
        try:
            data = self._trunk.reply(stream_id, payload)
        except MessageTooLarge as error:
            log.error("reply.too-large", size=error.size, limit=error.limit)
            data = self._trunk.refuse(stream_id, Code.RESOURCE_EXHAUSTED, str(error))
        self._write(data)

    def refuse(self, stream_id: int, code: int, message: str) -> None:
        """Answer a call with an error; text that is not UTF-8 is mended."""
        if self.closed.done():
            return
        self._write(self._trunk.refuse(stream_id, code, message))

    def close(self) -> None:
        """Hang up after what was written is out."""
        if self._transport is not None:
            self._transport.close()

    def lost(self) -> ConnectionLost:
        """Tell why the connection ended, as an error to raise."""
        reason = self.closed.result() if self.closed.done() else None
        return ConnectionLost(reason) if reason else ConnectionLost()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _: int) -> memoryview:
        """Tell where to put bytes; called by asyncio."""
        return self._input

    def buffer_updated(self, count: int) -> None:
        """Take bytes; called by asyncio."""
        try:
            events = self._trunk.receive_data(bytes(self._input[:count]))
        except RemoteProtocolError as error:
            self._fault = str(error)
            self._abort()
            return
        for event in events:
            match event:
                case Call():
                    self._on_call(event)
                case RejectedCall():
                    log.warning("call.refused", code=event.code, why=event.message)
                    self.refuse(event.stream_id, event.code, event.message)
                case CallReply() if event.stream_id in self._pending:
                    self._settle(event)
                case _:
                    log.debug("reply.stray", stream_id=event.stream_id)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what waits; called by asyncio, once."""
        self.resume_writing()
        # A broken pipe is a hang-up that came while we were writing.
        why = None if exc is None or isinstance(exc, ConnectionError) else str(exc)
        self.closed.set_result(self._fault or why)
        self._trunk.abandon()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self.lost())

    def pause_writing(self) -> None:
        """Take no more calls while the peer does not read our answers."""
        if self._transport is not None:
            self._transport.pause_reading()
        self._stalled = self._loop.call_later(WRITE_STALL, self._abort)

    def resume_writing(self) -> None:
        """Go on; called by asyncio."""
        if self._stalled is None:
            return
        self._stalled.cancel()
        self._stalled = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _settle(self, reply: CallReply) -> None:
        answer = self._pending[reply.stream_id]
        if not answer.done():
            answer.set_result(reply)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
