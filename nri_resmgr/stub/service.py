"""The Plugin service: finds the handler for each request message."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, cast

import attrs
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_proto.levels import NEWEST_FIELDS, OLDEST_EVENT_MASK, SPLIT_SYNC
from nri_resmgr.log import Logger
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.handlers import Handlers
from nri_resmgr.stub.malloc import give_back_memory, return_large_blocks_at_once
from nri_resmgr.stub.observer import Observer
from nri_resmgr.stub.replies import (
    CreateReply,
    UpdatesResponse,
    synchronize_response,
)
from nri_resmgr.stub.request import current_request
from nri_resmgr.stub.routes import (
    ROUTES,
    EventRoute,
    rejection,
    route_of_state_change,
)
from nri_resmgr.stub.runner import Invocation, Runner
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo, choose_mask
from nri_resmgr.stub.synchronize import SynchronizeChunks, split_updates
from nri_resmgr.stub.update_sender import UpdateCalls, UpdateSender

log = Logger(__name__)

# More requests tend to follow a Synchronize, or the end of a container, so memory is
# returned a bit later.
SETTLING_TIME: Final = 1.0  # seconds

# The other half is for a busier machine, and for more containers.
_SLOW: Final = 0.5  # of the runtime's timeout
_ADVICE: Final = "raise the runtime's timeout for requests of plugins"


def _nothing(_: object) -> None:
    return None


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@attrs.define(eq=False, repr=False)
class PluginService:
    """All methods of the service, whether the plugin has a handler or not.

    None is "unimplemented", because a runtime takes that for a failed request.

    Attributes:
        calls: Calls of UpdateContainers; learns the runtime from Configure.
        updates: Pending updates, some of which replies carry.
        may_guess_mask: Whether to try all events on a runtime of unknown level.
        given_config: Text for the ``configure`` handler in place of the runtime's.
        runtime: The runtime; empty before Configure.
        mask: The events subscribed to.
        configured: Done when Configure was answered; has the error if it failed.
        synchronized: Done when the last Synchronize message was answered.
        is_late: Whether that was after the timeout of the runtime, which then has ended
            the session, or sends no events.
    """

    runner: Runner
    calls: UpdateCalls
    updates: UpdateSender
    handlers: Handlers
    may_guess_mask: bool
    observer: Observer = attrs.field(factory=Observer)
    chunks: SynchronizeChunks = attrs.field(factory=SynchronizeChunks)
    given_config: str | None = None
    runtime: RuntimeInfo = attrs.field(factory=RuntimeInfo)
    mask: int = 0
    configured: asyncio.Future[None] = attrs.field(factory=_future, init=False)
    synchronized: asyncio.Future[None] = attrs.field(factory=_future, init=False)
    is_late: bool = attrs.field(default=False, init=False)
    _drops_fields: bool = attrs.field(default=False, init=False)
    _giving_back: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _synchronizes_since: float | None = attrs.field(default=None, init=False)

    @property
    def mask_is_a_guess(self) -> bool:
        """True if the runtime may hang up because it does not know the events."""
        return self.runtime.level is None and bool(self.mask & ~OLDEST_EVENT_MASK)

    def invocation(self, method: str, request: Message) -> Invocation:
        """Return what to run for a request message of *method*."""
        if (route := ROUTES.get(method)) is not None:
            return self._event(route, request)
        match request:
            case nri_pb2.ConfigureRequest():
                return self._configure(request)
            case nri_pb2.SynchronizeRequest():
                return self._synchronize(request)
            case nri_pb2.StateChangeEvent():
                return self._state_change(request)
            case _:  # Shutdown: the connection refuses unknown methods
                return Invocation(self.handlers.by_name.get("shutdown"), (), _nothing)

    def _configure(self, request: nri_pb2.ConfigureRequest) -> Invocation:
        self.runtime = RuntimeInfo.of(request)
        self.runner.request_timeout = self.runtime.request_timeout
        self.runner.is_timeout_reported = self.runtime.reports_timeouts
        self.calls.runtime = self.runtime
        level = self.runtime.level
        self._drops_fields = level is not None and level < NEWEST_FIELDS
        # After registration, which is timed, and before the first large message.
        asyncio.get_running_loop().call_soon(return_large_blocks_at_once)

        def answer(events: object) -> Message:
            self.mask = choose_mask(
                self.handlers.mask,
                cast("int | None", events),
                self.runtime,
                may_guess=self.may_guess_mask,
            )
            if not self.configured.done():
                self.configured.set_result(None)
            return nri_pb2.ConfigureResponse(events=self.mask)

        def fail(error: Exception) -> None:
            if not self.configured.done():
                self.configured.set_exception(error)

        text = request.config if self.given_config is None else self.given_config
        configuration = Configuration(text, self.runtime, self.calls.is_dry_run)
        handler = self.handlers.by_name.get("configure") or _nothing
        return Invocation(handler, (configuration,), answer, fail)

    def _synchronize(self, request: nri_pb2.SynchronizeRequest) -> Invocation:
        handler = self.handlers.by_name.get("synchronize")
        if self._synchronizes_since is None:
            self._synchronizes_since = asyncio.get_running_loop().time()
        if handler is not None:
            self.chunks.add(request)
        if request.more:
            more = nri_pb2.SynchronizeResponse(more=True)
            return Invocation(None, (), lambda _: more)
        pods, containers = self.chunks.take()
        answer = partial(self._synchronized, self._synchronizes_since)
        self._synchronizes_since = None
        return Invocation(handler, (pods, containers), answer, has_deadline=False)

    def _synchronized(self, since: float, result: object) -> Message:
        response = synchronize_response(result)
        self.updates.schedule(map(from_message, split_updates(response)))
        self.observer.synchronized()
        if not self.synchronized.done():
            self.synchronized.set_result(None)
            log.info("session.synchronized", updates=len(response.update))
            self._give_back_memory_later()
        self._warn_if_slow(since)
        self._reconnect_if_too_late()
        return response

    def _warn_if_slow(self, since: float) -> None:
        # A runtime has one timeout for all messages of a Synchronize, and disconnects
        # a plugin that takes longer.
        now, request = asyncio.get_running_loop().time(), current_request()
        taken, timeout = now - since, self.runtime.request_timeout
        # The last message has its own timeout: what is left of that of all of them.
        is_last_late = request and now - request.received > request.timeout
        self.is_late = taken > timeout or bool(is_last_late)
        seconds = round(taken, 2)
        if self.is_late:
            log.error(
                "synchronize.too-slow",
                seconds=seconds,
                timeout=timeout,
                action="another session, after pauses of up to 30 s",
                advice=_ADVICE,
            )
        elif taken > timeout * _SLOW:
            log.warning(
                "synchronize.slow", seconds=seconds, timeout=timeout, advice=_ADVICE
            )

    def _give_back_memory_later(self) -> None:
        if self._giving_back is not None:
            self._giving_back.cancel()
        loop = asyncio.get_running_loop()
        self._giving_back = loop.call_later(SETTLING_TIME, give_back_memory)

    def _reconnect_if_too_late(self) -> None:
        # Before NRI 0.7 a plugin that answers Synchronize after the timeout stays
        # connected and never gets an event. Only a new session helps. A runtime of
        # unknown level may be an old one.
        level = self.runtime.level
        if self.is_late and (level is None or level < SPLIT_SYNC):
            self.runner.link.close()

    def _state_change(self, request: nri_pb2.StateChangeEvent) -> Invocation:
        route = route_of_state_change(request.event)
        if route is None:
            log.debug("event.unknown", number=request.event)
            return Invocation(None, (), _nothing)
        return self._event(route, request)

    def _event(self, route: EventRoute, request: Any) -> Invocation:
        handler = self.handlers.by_name.get(route.handler)

        def answer(result: object) -> Message | None:
            response = route.encode(result, request)
            if self._drops_fields:
                self._warn_of_ignored_fields(result)
            if isinstance(response, UpdatesResponse):
                self.updates.attach(response, busy=request.container.id)
            if route.ends:
                self.updates.pending.forget(request.container.id)
                self._give_back_memory_later()
            return response

        return Invocation(
            handler,
            route.arguments(request) if handler is not None else (),
            answer,
            rejection if route.rejects else None,
        )

    def _warn_of_ignored_fields(self, result: object) -> None:
        # Runtimes silently ignore fields that they do not know.
        adjustment = result.adjustment if isinstance(result, CreateReply) else result
        level = self.runtime.level
        if level is None or not isinstance(adjustment, ContainerAdjustment):
            return
        if (needed := adjustment.needs_level) > level:
            log.warning("adjustment.too-new", needs=str(needed), runtime=str(level))
