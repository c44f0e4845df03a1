"""The runtime's end of one connection: asyncio streams on a `Trunk`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

import msgspec
from google.protobuf.message import DecodeError, Message

from nri_proto import (
    RUNTIME_METHODS,
    Call,
    CallReply,
    Code,
    Method,
    RejectedCall,
    RemoteProtocolError,
    Trunk,
)
from nri_resmgr.stub.observer import Sender
from nri_resmgr.testing.errors import (
    ErrorReply,
    PluginHungUp,
    PluginLate,
    PluginRefused,
)
from nri_resmgr.testing.misbehaviour import GOOD, Misbehaviour, oversize_call
from nri_resmgr.testing.tape import Failure, RecordedMessage, Tape

_CHUNK: Final = 1 << 16

Serve: TypeAlias = Callable[[str, Message], Awaitable[Message]]


class _Open(msgspec.Struct, frozen=True):
    """A call of the runtime that waits for its reply."""

    method: Method
    answer: asyncio.Future[Message]


class PluginConnection:
    """Calls a plugin, and serves its calls.

    Attributes:
        plugin: ``NN-name`` for records and errors; empty before RegisterPlugin.
        misbehaviour: The misbehaviour here; may be changed at any time.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        serve: Serve,
        tape: Tape,
    ) -> None:
        self.plugin = ""
        self.misbehaviour: Misbehaviour = GOOD
        self._reader = reader
        self._writer = writer
        self._serve = serve
        self._tape = tape
        self._trunk = Trunk.of_runtime()
        self._open: dict[int, _Open] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._is_slow = False
        self._closed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """True if either side has ended the connection."""
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        """Wait until either side has ended the connection."""
        await self._closed.wait()

    async def run(self) -> None:
        """Read until end of file; then fail the calls that are still open."""
        slow_writer = asyncio.create_task(self._write_slowly())
        try:
            while data := await self._reader.read(_CHUNK):
                for event in self._trunk.receive_data(data):
                    self._take(event)
        except (ConnectionError, RemoteProtocolError):
            pass  # the same as end of file for open calls
        finally:
            slow_writer.cancel()
            self.close()

    def close(self) -> None:
        """End the connection; calls that are open fail with `PluginHungUp`."""
        self._closed.set()
        self._writer.close()
        for stream_id in self._trunk.abandon():
            answer = self._open.pop(stream_id).answer
            if not answer.done():
                answer.set_exception(PluginHungUp())

    async def finish(self) -> None:
        """Close, and wait for the end of the socket and of all tasks."""
        self.close()
        await asyncio.gather(*self._serving, return_exceptions=True)
        # It is closed, also if the peer has reset it.
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def begin(
        self, method: Method, request: Message, timeout: float
    ) -> asyncio.Future[Message]:
        """Write a request at once; the future gets the reply.

        Raises:
            MessageTooLarge: Over 4 MiB; nothing was written.
            PluginHungUp: The connection is closed.
        """
        if self.is_closed:
            raise PluginHungUp
        wrong = self.misbehaviour
        sent_timeout = timeout if wrong.timeout is None else wrong.timeout
        payload = request.SerializeToString()
        if wrong.oversize:
            stream_id, data = oversize_call(self._trunk, method, payload, sent_timeout)
        else:
            stream_id, data = self._trunk.call(method, payload, timeout=sent_timeout)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        # When the plugin hangs up, there may be no waiter: retrieve the exception.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._open[stream_id] = _Open(method, answer)
        self._note(Sender.RUNTIME, method.name, request)
        self.write(wrong.noise + data)
        return answer

    async def end(
        self,
        method: Method,
        answer: asyncio.Future[Message],
        within: float,
        *,
        keeps_late: bool = False,
    ) -> Message:
        """Wait for the reply to a request that was begun.

        With *keeps_late* a late reply does not end the connection.

        Raises:
            PluginRefused: The reply is an error status.
            PluginLate: There was no reply in time; the connection is closed.
            PluginHungUp: The connection ended first.
        """
        try:
            async with asyncio.timeout(within):
                return await answer
        except TimeoutError:
            if not keeps_late:
                self.close()
            raise PluginLate(method.name, within) from None

    def write(self, data: bytes) -> None:
        """Write raw bytes, in order with all other output."""
        if self.is_closed:
            return
        # Slow writing never ends: later bytes must not overtake those that still wait.
        self._is_slow |= self.misbehaviour.bytes_per_write is not None
        if self._is_slow:
            self._outgoing.put_nowait(data)
        else:
            self._writer.write(data)

    async def _write_slowly(self) -> None:
        while True:
            data = await self._outgoing.get()
            size = self.misbehaviour.bytes_per_write or len(data)
            for at in range(0, len(data), size):
                self._writer.write(data[at : at + size])
                # Let a plugin in the same event loop read piece by piece.
                await asyncio.sleep(0)

    def _take(self, event: object) -> None:
        match event:
            case Call():
                task = asyncio.create_task(self._answer(event))
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)
            case RejectedCall(stream_id, code, message):
                self.write(self._trunk.refuse(stream_id, code, message))
            case CallReply() if event.stream_id in self._open:
                self._settle(event)

    def _settle(self, reply: CallReply) -> None:
        waiting = self._open.pop(reply.stream_id)
        method, answer = waiting.method, waiting.answer
        refused = partial(PluginRefused, self.plugin, method.name)
        result: Message | PluginRefused
        if reply.code != Code.OK:
            self._note(Sender.PLUGIN, method.name, Failure(reply.code, reply.message))
            result = refused(reply.code, reply.message)
        else:
            try:
                result = method.response.FromString(reply.payload)
                self._note(Sender.PLUGIN, method.name, result)
            except DecodeError as error:
                result = refused(Code.INTERNAL, str(error))
        if answer.done():
            return
        if isinstance(result, PluginRefused):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    async def _answer(self, call: Call) -> None:
        method = RUNTIME_METHODS[call.method]
        try:
            request = method.request.FromString(call.payload)
        except DecodeError as error:
            self.write(self._trunk.refuse(call.stream_id, Code.INTERNAL, str(error)))
            return
        self._note(Sender.PLUGIN, call.method, request)
        try:
            reply = await self._serve(call.method, request)
        except ErrorReply as error:
            self._note(Sender.RUNTIME, call.method, Failure(error.code, error.message))
            self.write(self._trunk.refuse(call.stream_id, error.code, error.message))
        else:
            self._note(Sender.RUNTIME, call.method, reply)
            self.write(self._trunk.reply(call.stream_id, reply.SerializeToString()))

    def _note(self, sender: Sender, method: str, body: Message | Failure) -> None:
        self._tape.add(RecordedMessage(self.plugin, sender, method, body))
