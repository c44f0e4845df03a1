"""Runs handlers: in order, within their deadline, each answered once."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs
import msgspec
from google.protobuf.message import Message

from nri_proto import Call, Code
from nri_resmgr.log import Logger
from nri_resmgr.stub.errors import RequestRejected
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.request import RequestContext, enter, leave
from nri_resmgr.values.errors import ResmgrError

log = Logger(__name__)

# NRI's own default, in force until Configure tells another.
DEFAULT_REQUEST_TIMEOUT: Final = 2.0  # seconds


class Overrun(enum.StrEnum):
    """What becomes of a request whose asynchronous handler is not done in time.

    An error would fail the container, so it is not among the choices.
    """

    ANSWER = "answer"  # the handler's safe answer, or an empty one
    LAPSE = "lapse"  # nothing: the runtime throws the plugin out


class Invocation(msgspec.Struct, frozen=True):
    """One handler call with what to do with its outcome.

    Attributes:
        handler: None when the plugin does not handle this; answered empty.
        encode: Turns the handler's result into the response message.
        on_error: Told of the handler's exception, may turn it into a response;
            otherwise the answer is an error status.
        limited: Whether the deadline applies. Synchronize has none here.
    """

    handler: Callable[..., Any] | None
    arguments: tuple[object, ...]
    encode: Callable[[object], Message | None]
    on_error: Callable[[Exception], Message | None] | None = None
    limited: bool = True


StatusOf: TypeAlias = Callable[[Exception], tuple[int, str]]


def default_status(error: Exception) -> tuple[int, str]:
    """Give the status and the sentence for a handler's exception."""
    if isinstance(error, RequestRejected):
        return error.code, error.message
    if isinstance(error, ResmgrError):
        return Code.UNKNOWN, str(error)
    return Code.UNKNOWN, f"{type(error).__name__}: {error}"


@attrs.define(eq=False, repr=False)
class Runner:
    """Starts a handler for each call, in the order of the calls.

    A plain function is done before the next call is looked at. A coroutine runs
    as a task, so that replies may finish in another order.
    """

    link: Link
    overrun: Overrun = Overrun.ANSWER
    status_of: StatusOf = default_status
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _loop: asyncio.AbstractEventLoop = attrs.field(
        factory=asyncio.get_running_loop, init=False
    )

    def __attrs_post_init__(self) -> None:
        self.idle.set()

    def start(self, call: Call, invocation: Invocation) -> None:
        """Run the handler; its answer goes out when it is done."""
        if invocation.handler is None:
            self._answer(call, invocation, None)
            return
        request = RequestContext(
            method=call.method,
            received=self._loop.time(),
            timeout=self._timeout_of(call),
            metadata=call.metadata,
        )
        token = enter(request)
        try:
            result = invocation.handler(*invocation.arguments)
            if isinstance(result, Awaitable):
                self._start_task(call, invocation, request, result)
                return
            self._answer(call, invocation, result)
        except Exception as error:  # noqa: BLE001 - the edge: any fault of a handler becomes a status
            self._fail(call, invocation, error)
        finally:
            leave(token)
        request.is_over = True

    async def drain(self) -> None:
        """Wait until every handler is done, at most one request's time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.request_timeout)

    def cancel(self) -> None:
        """Give up on handlers whose connection is gone."""
        for task in self._tasks:
            task.cancel()

    def _timeout_of(self, call: Call) -> float:
        # A deadline that had passed when the runtime sent is no time to work in,
        # yet the plugin must learn of the event.
        if call.timeout is None or call.timeout <= 0:
            return self.request_timeout
        return min(call.timeout, self.request_timeout)

    def _start_task(
        self, call: Call, invocation: Invocation, request: RequestContext, result: Any
    ) -> None:
        # The task copies the context, so the request stays current inside.
        task = asyncio.ensure_future(self._run(call, invocation, request, result))
        self._tasks.add(task)
        self.idle.clear()
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self.idle.set()

    async def _run(
        self, call: Call, invocation: Invocation, request: RequestContext, result: Any
    ) -> None:
        limit = request.deadline if invocation.limited else None
        try:
            async with asyncio.timeout_at(limit) as deadline:
                outcome = await result
        except TimeoutError as error:
            if deadline.expired():
                self._overrun(call, invocation, request)
            else:
                self._fail(call, invocation, error)
        except Exception as error:  # noqa: BLE001 - same edge as in start
            self._fail(call, invocation, error)
        else:
            self._try_answer(call, invocation, outcome)
        finally:
            request.is_over = True

    def _overrun(
        self, call: Call, invocation: Invocation, request: RequestContext
    ) -> None:
        if self.overrun is Overrun.ANSWER:
            self._try_answer(call, invocation, request.safe_answer)
        log.error(
            "handler.overran",
            method=call.method,
            timeout=request.timeout,
            then=self.overrun.value,
        )

    def _try_answer(self, call: Call, invocation: Invocation, result: object) -> None:
        try:
            self._answer(call, invocation, result)
        except Exception as error:  # noqa: BLE001 - a result that cannot be encoded is the handler's fault
            self._fail(call, invocation, error)

    def _answer(self, call: Call, invocation: Invocation, result: object) -> None:
        self.link.reply(call.stream_id, invocation.encode(result))

    def _fail(self, call: Call, invocation: Invocation, error: Exception) -> None:
        expected = isinstance(error, (RequestRejected, ResmgrError))
        code, message = self.status_of(error)
        answer = invocation.on_error(error) if invocation.on_error else None
        if answer is not None:
            self.link.reply(call.stream_id, answer)
        else:
            self.link.refuse(call.stream_id, code, message)
        # After the answer: a traceback may take its time.
        log.error(
            "handler.failed",
            method=call.method,
            why=message,
            exc_info=None if expected else error,
        )
