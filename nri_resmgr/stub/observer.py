"""Observation of sessions: their steps, the time of each answer, every message."""

from __future__ import annotations

import enum
from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

import msgspec
from google.protobuf.message import DecodeError, Message

from nri_proto import PLUGIN_METHODS, Call, Code, Method, Trunk
from nri_resmgr.stub.errors import CallFailed, SessionError
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.runtime_info import RuntimeInfo


class Observer:
    """Receives the steps of sessions; override the methods of interest.

    They are called in the event loop, after the step. They must be fast and must not
    raise. The methods of this class do nothing.
    """

    def registered(self, runtime: RuntimeInfo) -> None:
        """A session has begun: the plugin is registered and configured."""

    def synchronized(self) -> None:
        """The last Synchronize message was handled; its answer is on its way."""

    def ended(self, why: str) -> None:
        """The session has ended, or could not begin."""

    def called(self, method: str) -> None:
        """The runtime has called *method*; `answered` or `ended` will follow."""

    def answered(self, method: str, seconds: float, code: int) -> None:
        """A call of the runtime was answered.

        Args:
            method: Its name, such as ``CreateContainer``.
            seconds: From its arrival to the answer.
            code: The ttRPC status; 0 for a success.
        """


class Sender(enum.StrEnum):
    """The side that sent a message."""

    PLUGIN = "plugin"
    RUNTIME = "runtime"


class Tapped(msgspec.Struct, frozen=True):
    """One message of a session.

    Attributes:
        sender: Which side sent it.
        method: The call it belongs to; a reply has its request's.
        body: The request, the reply, or the error in place of a reply. Not a copy.
        request: The request that a reply answers; None if *body* is a request.
    """

    sender: Sender
    method: str
    body: Message | SessionError
    request: Message | None = None


# It is called before the message goes on, so it must be fast, and must not raise.
OnMessage: TypeAlias = Callable[[Tapped], None]


class TimedLink(Link):
    """A link that reports the time of each answer to an observer.

    A separate class, so that a session without an observer pays nothing.
    """

    def __init__(
        self, trunk: Trunk, on_call: Callable[[Call], None], observer: Observer
    ) -> None:
        super().__init__(trunk, self._time_call)
        self._on_timed_call = on_call
        self._observer = observer
        self._began: dict[int, tuple[str, float]] = {}

    def reply(self, stream_id: int, message: Message | None = None) -> None:
        """Answer a call; see `Link.reply`."""
        super().reply(stream_id, message)
        self._answered(stream_id, Code.OK)

    def refuse(self, stream_id: int, code: int, message: str) -> None:
        """Answer a call with an error; see `Link.refuse`."""
        super().refuse(stream_id, code, message)
        self._answered(stream_id, code)

    def _time_call(self, call: Call) -> None:
        self._began[call.stream_id] = call.method, perf_counter()
        self._observer.called(call.method)
        self._on_timed_call(call)

    def _answered(self, stream_id: int, code: int) -> None:
        if (found := self._began.pop(stream_id, None)) is not None:
            method, began = found
            self._observer.answered(method, perf_counter() - began, code)


class TappedLink(TimedLink):
    """A link that passes each message to a callback first.

    A separate class, so that a session without a tap pays nothing.
    """

    def __init__(
        self,
        trunk: Trunk,
        on_call: Callable[[Call], None],
        tap: OnMessage,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(trunk, self._tap_call, observer or Observer())
        self._on_tapped_call = on_call
        self._tap = tap
        self._open: dict[int, tuple[str, Message]] = {}

    async def call(self, method: Method, request: Message, within: float) -> Message:
        """Call the peer; see `Link.call`."""
        self._tap(Tapped(Sender.PLUGIN, method.name, request))
        try:
            answer = await super().call(method, request, within)
        except SessionError as error:
            self._tap(Tapped(Sender.RUNTIME, method.name, error, request))
            raise
        self._tap(Tapped(Sender.RUNTIME, method.name, answer, request))
        return answer

    def reply(self, stream_id: int, message: Message | None = None) -> None:
        """Answer a call; see `Link.reply`."""
        if (found := self._open.pop(stream_id, None)) is not None:
            name, request = found
            body = message or PLUGIN_METHODS[name].response()
            self._tap(Tapped(Sender.PLUGIN, name, body, request))
        super().reply(stream_id, message)

    def refuse(self, stream_id: int, code: int, message: str) -> None:
        """Answer a call with an error; see `Link.refuse`."""
        if (found := self._open.pop(stream_id, None)) is not None:
            name, request = found
            body = CallFailed(name, code, message)
            self._tap(Tapped(Sender.PLUGIN, name, body, request))
        super().refuse(stream_id, code, message)

    def _tap_call(self, call: Call) -> None:
        try:
            request = PLUGIN_METHODS[call.method].request.FromString(call.payload)
        except DecodeError as error:
            unread = CallFailed(call.method, Code.INTERNAL, str(error))
            self._tap(Tapped(Sender.RUNTIME, call.method, unread))
        else:
            self._open[call.stream_id] = call.method, request
            self._tap(Tapped(Sender.RUNTIME, call.method, request))
        self._on_tapped_call(call)
