"""The Plugin service: finds the handler for each request message."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, cast

import attrs
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_proto.levels import NEWEST_FIELDS, OLDEST_EVENT_MASK, SPLIT_SYNC
from nri_resmgr.log import Logger
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.handlers import Handlers
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

# More requests tend to follow a Synchronize, so memory is returned a bit later.
SETTLING_TIME: Final = 1.0  # seconds


def _nothing(_: object) -> None:
    return None


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@attrs.define(eq=False, repr=False)
class PluginService:
    """All methods of the service, whether the plugin has a handler or not.

    None is "unimplemented", because a runtime takes that for a failed request.

    Attributes:
        runner: Runs the handlers.
        calls: Calls of UpdateContainers; learns the runtime's level from Configure.
        updates: Pending updates, some of which replies carry.
        handlers: The plugin's handlers.
        may_guess_mask: Whether to try all events on a runtime of unknown level.
        observer: Is notified when the plugin is synchronized.
        runtime: The runtime; empty before Configure.
        mask: The events subscribed to.
        configured: Done when Configure was answered; has the error if it failed.
        synchronized: Done when the last Synchronize message was answered.
    """

    runner: Runner
    calls: UpdateCalls
    updates: UpdateSender
    handlers: Handlers
    may_guess_mask: bool
    observer: Observer = attrs.field(factory=Observer)
    runtime: RuntimeInfo = attrs.field(factory=RuntimeInfo)
    mask: int = 0
    configured: asyncio.Future[None] = attrs.field(factory=_future, init=False)
    synchronized: asyncio.Future[None] = attrs.field(factory=_future, init=False)
    _drops_fields: bool = attrs.field(default=False, init=False)
    _chunks: SynchronizeChunks = attrs.field(factory=SynchronizeChunks, init=False)

    @property
    def mask_is_a_guess(self) -> bool:
        """Whether the runtime may hang up because it does not know the events."""
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
                return Invocation(self.handlers.get("shutdown"), (), _nothing)

    def _configure(self, request: nri_pb2.ConfigureRequest) -> Invocation:
        self.runtime = RuntimeInfo.of(request)
        self.runner.request_timeout = self.runtime.request_timeout
        level = self.calls.level = self.runtime.level
        self._drops_fields = level is not None and level < NEWEST_FIELDS

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

        configuration = Configuration(request.config, self.runtime)
        handler = self.handlers.get("configure") or _nothing
        return Invocation(handler, (configuration,), answer, fail)

    def _synchronize(self, request: nri_pb2.SynchronizeRequest) -> Invocation:
        handler = self.handlers.get("synchronize")
        if handler is not None:
            self._chunks.add(request)
        if request.more:
            more = nri_pb2.SynchronizeResponse(more=True)
            return Invocation(None, (), lambda _: more)
        pods, containers = self._chunks.take()
        return Invocation(
            handler, (pods, containers), self._synchronized, has_deadline=False
        )

    def _synchronized(self, result: object) -> Message:
        response = synchronize_response(result)
        self.updates.schedule(map(from_message, split_updates(response)))
        self.observer.synchronized()
        if not self.synchronized.done():
            self.synchronized.set_result(None)
            log.info("plugin.synchronized", updates=len(response.update))
            asyncio.get_running_loop().call_later(SETTLING_TIME, give_back_memory)
        self._reconnect_if_too_late()
        return response

    def _reconnect_if_too_late(self) -> None:
        # Before NRI 0.7 a plugin that answers Synchronize after the timeout stays
        # connected and never gets an event. Only a new session helps.
        request, level = current_request(), self.runtime.level
        if request is None or (level is not None and level >= SPLIT_SYNC):
            return  # a runtime of unknown level may be an old one
        taken = asyncio.get_running_loop().time() - request.received
        if taken > request.timeout:
            log.error("synchronize.too-slow", seconds=taken, then="reconnect")
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
                self.updates.pending.attach(response, busy=request.container.id)
            if route.ends:
                self.updates.pending.forget(request.container.id)
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


def give_back_memory() -> None:
    """Return freed memory to the kernel, if the C library can.

    glibc keeps freed memory for later use. The messages of a large node are megabytes
    in several copies that will not be needed again.

    Source:
        malloc_trim(3).
    """
    import ctypes  # late, to keep it off the start path

    # Other C libraries than glibc do not have this function.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
