"""The asyncio side of an NRI connection: bytes in and out of a `Trunk`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Final, cast

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
from nri_resmgr.values.printable import printable

log = Logger(__name__)

# A peer that reads nothing for this time is lost, although the socket is open.
WRITE_STALL: Final = 10.0  # seconds

# Reads go into one buffer. A plain asyncio.Protocol allocates 256 KiB for each read:
# depending on the heap that is a new mapping each time, 25 µs.
_READ_SIZE: Final = 64 << 10


class Link(asyncio.BufferedProtocol):
    """Passes bytes between a socket and a `Trunk`; makes and answers calls.

    Args:
        trunk: The plugin's end or the runtime's end of the protocol.
        on_call: Receives the calls of the peer in their order. Each must be answered
            once with `reply` or `refuse`, at any time; after the connection is lost
            both do nothing.

    Attributes:
        closed: Done when the connection has ended; its result is the reason, None
            for a plain end of file.
        write_stall: Seconds that the peer may leave its messages unread.
    """

    write_stall: ClassVar[float] = WRITE_STALL

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
        """True if the connection was made and has not ended."""
        return self._transport is not None and not self.closed.done()

    async def call(self, method: Method, request: Message, within: float) -> Message:
        """Call the peer and wait for its answer.

        Args:
            method: From `RUNTIME_METHODS` or `PLUGIN_METHODS`.
            request: Its request message.
            within: Seconds to wait; also sent to the peer as its deadline.

        Returns:
            A message of the method's response class.

        Raises:
            CallFailed: The peer answered with an error.
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
        """Answer a call with an error.

        Runtimes log the message, and `kubectl describe` shows it: it is made
        `printable`.
        """
        if self.closed.done():
            return
        self._write(self._trunk.refuse(stream_id, code, printable(message)))

    def close(self) -> None:
        """Close the connection after pending output is written."""
        if self._transport is not None:
            self._transport.close()

    def lost(self) -> ConnectionLost:
        """Return an error with the reason for which the connection ended."""
        reason = self.closed.result() if self.closed.done() else None
        return ConnectionLost(reason) if reason else ConnectionLost()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _: int) -> memoryview:
        """Return the buffer for the next read; called by asyncio."""
        return self._input

    def buffer_updated(self, count: int) -> None:
        """Process bytes that were read; called by asyncio."""
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
                    answer = self._pending[event.stream_id]
                    if not answer.done():
                        answer.set_result(event)
                case _:
                    log.debug("reply.stray", stream_id=event.stream_id)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the open calls; called by asyncio, once."""
        self.resume_writing()
        # A broken pipe is an end of file that came during a write.
        why = None if exc is None or isinstance(exc, ConnectionError) else str(exc)
        self.closed.set_result(self._fault or why)
        self._trunk.abandon()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self.lost())

    def pause_writing(self) -> None:
        """Read no more calls while the peer does not read the answers."""
        if self._transport is not None:
            self._transport.pause_reading()
        self._stalled = self._loop.call_later(self.write_stall, self._give_up)

    def resume_writing(self) -> None:
        """Read calls again; called by asyncio."""
        if self._stalled is None:
            return
        self._stalled.cancel()
        self._stalled = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _give_up(self) -> None:
        self._fault = f"the peer has not read its messages for {self.write_stall:g} s"
        self._abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
