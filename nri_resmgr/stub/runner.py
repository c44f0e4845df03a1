"""Execution of handlers: in order, with a deadline, each answered once."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs
import msgspec
from google.protobuf.message import Message

from nri_proto import Call, Code
from nri_resmgr.log import Logger
from nri_resmgr.stub.author_line import blame
from nri_resmgr.stub.errors import RequestRejected
from nri_resmgr.stub.handlers import Handler
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.request import RequestContext, enter, leave
from nri_resmgr.stub.runtime_info import DEFAULT_REQUEST_TIMEOUT
from nri_resmgr.values.errors import ResmgrError

log = Logger(__name__)

# Share of a request's time from which a handler is reported: more than that, on a
# busier machine, may be too late.
_SLOW_SHARE: Final = 0.25


class Overrun(enum.StrEnum):
    """Treatment of a request whose asynchronous handler is not done in time.

    An error would fail the container, so it is not offered.
    """

    ANSWER = "answer"  # the handler's safe answer, or an empty one
    LAPSE = "lapse"  # no answer: the runtime disconnects the plugin


class Invocation(msgspec.Struct, frozen=True):
    """One call of a handler and the conversion of its outcome.

    Attributes:
        handler: The handler; None answers with `encode` of None.
        arguments: Its arguments.
        encode: Converts the handler's result to the response message.
        on_error: Receives the handler's exception and may return a response;
            otherwise the answer is an error status.
        has_deadline: Whether a late handler is stopped; not so for Synchronize.
    """

    handler: Handler | None
    arguments: tuple[object, ...]
    encode: Callable[[object], Message | None]
    on_error: Callable[[Exception], Message | None] | None = None
    has_deadline: bool = True


StatusOf: TypeAlias = Callable[[Exception], tuple[int, str]]


def default_status(error: Exception) -> tuple[int, str]:
    """Return the status code and the message for a handler's exception."""
    if isinstance(error, RequestRejected):
        return error.code, error.message
    if isinstance(error, ResmgrError):
        return Code.UNKNOWN, str(error)
    return Code.UNKNOWN, f"{type(error).__name__}: {error}"


@attrs.define(eq=False, repr=False)
class Runner:
    """Starts a handler for each call, in the order of the calls.

    A plain function is done before the next call is read. A coroutine runs as a task,
    so replies may be sent in another order.

    Attributes:
        request_timeout: Seconds that the runtime waits for an answer.
        is_timeout_reported: Whether the runtime has reported them, so that no request
            has more. Otherwise they are a guess, for a request that reports none.
        idle: Set while no asynchronous handler runs.
    """

    link: Link
    overrun: Overrun = Overrun.ANSWER
    status_of: StatusOf = default_status
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT
    is_timeout_reported: bool = False
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _loop: asyncio.AbstractEventLoop = attrs.field(
        factory=asyncio.get_running_loop, init=False
    )
    _last_active: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._last_active = self._loop.time()
        self.idle.set()

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the last request; 0 while a handler runs."""
        return 0.0 if self._tasks else self._loop.time() - self._last_active

    def start(self, call: Call, invocation: Invocation) -> None:
        """Run the handler; its answer is sent when it is done."""
        self._last_active = self._loop.time()
        if invocation.handler is None:
            self.link.reply(call.stream_id, invocation.encode(None))
            return
        timeout = self.request_timeout
        # A deadline that has already passed leaves no time to work, but the plugin must
        # still handle the event.
        if call.timeout is not None and call.timeout > 0:
            # Runtimes send with each request how long they wait for its answer; before
            # NRI 0.7 they report that in no other way.
            is_limited = self.is_timeout_reported
            timeout = min(call.timeout, timeout) if is_limited else call.timeout
        request = RequestContext(
            method=call.method,
            received=self._last_active,
            timeout=timeout,
            metadata=call.metadata,
        )
        token = enter(request)
        try:
            result = invocation.handler(*invocation.arguments)
            # Cheaper than `isinstance` of an abstract class.
            if hasattr(result, "__await__"):
                # The task copies the context, so the request stays current inside.
                running = self._run(call, invocation, request, result)
                task = asyncio.create_task(running)
                self._tasks.add(task)
                self.idle.clear()
                task.add_done_callback(self._forget)
                return
            self.link.reply(call.stream_id, invocation.encode(result))
        except Exception as error:  # noqa: BLE001 - any error of a handler becomes a status
            self._fail(call, invocation, error)
        finally:
            leave(token)
        request.is_over = True
        self._warn_if_slow(invocation, request)

    async def drain(self) -> None:
        """Wait until all handlers are done, at most for the request timeout."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.request_timeout)

    def cancel(self) -> None:
        """Cancel the handlers after their connection was lost."""
        for task in self._tasks:
            task.cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._last_active = self._loop.time()
        if not self._tasks:
            self.idle.set()

    async def _run(
        self,
        call: Call,
        invocation: Invocation,
        request: RequestContext,
        result: Awaitable[object],
    ) -> None:
        limit = request.deadline if invocation.has_deadline else None
        try:
            async with asyncio.timeout_at(limit) as deadline:
                outcome = await result
        except TimeoutError as error:
            if deadline.expired():
                self._overrun(call, invocation, request)
                return  # its line says more than that of a slow one
            self._fail(call, invocation, error)
        except Exception as error:  # noqa: BLE001 - as in start
            self._fail(call, invocation, error)
        else:
            self._try_answer(call, invocation, outcome)
        finally:
            request.is_over = True
        self._warn_if_slow(invocation, request)

    def _warn_if_slow(self, invocation: Invocation, request: RequestContext) -> None:
        taken = self._loop.time() - request.received
        # Synchronize has no deadline, and a line of its own.
        if taken < request.timeout * _SLOW_SHARE or not invocation.has_deadline:
            return
        log.warning(
            "handler.slow",
            handler=_name_of(invocation),
            method=request.method,
            seconds=round(taken, 2),
            timeout=request.timeout,
        )

    def _overrun(
        self, call: Call, invocation: Invocation, request: RequestContext
    ) -> None:
        if self.overrun is Overrun.ANSWER:
            self._try_answer(call, invocation, request.safe_answer)
        log.error(
            "handler.overran",
            handler=_name_of(invocation),
            method=call.method,
            timeout=request.timeout,
            action=self.overrun.value,
        )

    def _try_answer(self, call: Call, invocation: Invocation, result: object) -> None:
        try:
            self.link.reply(call.stream_id, invocation.encode(result))
        except Exception as error:  # noqa: BLE001 - a result that cannot be encoded is an error of the handler
            self._fail(call, invocation, error)

    def _fail(self, call: Call, invocation: Invocation, error: Exception) -> None:
        expected = isinstance(error, (RequestRejected, ResmgrError))
        code, message = self.status_of(error)
        answer = invocation.on_error(error) if invocation.on_error else None
        if answer is not None:
            self.link.reply(call.stream_id, answer)
        else:
            self.link.refuse(call.stream_id, code, message)
        # An error of Configure ends the session, and is raised to its caller.
        is_raised = call.method == "Configure"
        if isinstance(error, ResmgrError) and (error.is_logged or is_raised):
            log.debug("handler.refused", method=call.method, why=message)
            return
        # After the answer, because formatting a traceback takes time.
        if expected:
            log.error("handler.failed", method=call.method, why=message)
            return
        found = blame(error, invocation.handler)
        log.error(
            "handler.failed",
            method=call.method,
            why=message,
            at=found.at,
            exc_info=found.shown,
        )


def _name_of(invocation: Invocation) -> str:
    return getattr(invocation.handler, "__qualname__", "")
