"""The Plugin service: from each request message to the handler and its reply."""

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
from nri_resmgr.stub.replies import CreateReply, synchronize_response
from nri_resmgr.stub.request import current_request
from nri_resmgr.stub.routes import (
    ROUTES,
    EventRoute,
    rejection,
    route_of_state_change,
)
from nri_resmgr.stub.runner import Invocation, Runner
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.stub.snapshot import Snapshot, split_updates
from nri_resmgr.stub.subscription import choose_mask
from nri_resmgr.stub.update_calls import UpdateCalls
from nri_resmgr.stub.update_sender import UpdateSender

log = Logger(__name__)

# A node that has just told what runs tends to have more to say; no need to hurry.
SETTLING_TIME: Final = 1.0  # seconds


def _nothing(_: object) -> None:
    return None


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@attrs.define(eq=False, repr=False)
class PluginService:
    """All methods of the service, whether the plugin has a handler or not.

    A runtime takes "unimplemented" for a failed request, so nothing is.

    Attributes:
        observer: Told when the runtime has said what runs.
        handlers: What the plugin handles.
        runtime: Known once Configure has come.
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
    _snapshot: Snapshot = attrs.field(factory=Snapshot, init=False)

    @property
    def mask_is_a_guess(self) -> bool:
        """Whether a hang-up may mean that the runtime did not know the events."""
        return self.runtime.level is None and bool(self.mask & ~OLDEST_EVENT_MASK)

    def invocation(self, method: str, request: Any) -> Invocation:
        """Tell what to run for a request message of *method*."""
        if (route := ROUTES.get(method)) is not None:
            return self._event(route, request)
        match method:
            case "Configure":
                return self._configure(request)
            case "Synchronize":
                return self._synchronize(request)
            case "StateChange":
                return self._state_change(request)
            case _:
                return Invocation(self.handlers.get("shutdown"), (), _nothing)

    def _configure(self, request: nri_pb2.ConfigureRequest) -> Invocation:
        self.runtime = RuntimeInfo.of(request)
        self.runner.request_timeout = self.runtime.request_timeout
        level = self.calls.level = self.runtime.level
        self._drops_fields = level is not None and level < NEWEST_FIELDS

        def answer(wanted: object) -> Message:
            # An enum flag or a plain int is as good as None.
            self.mask = choose_mask(
                self.handlers.mask,
                cast("int | None", wanted),
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
            self._snapshot.add(request)
        if request.more:
            more = nri_pb2.SynchronizeResponse(more=True)
            return Invocation(None, (), lambda _: more)
        pods, containers = self._snapshot.take()
        return Invocation(
            handler, (pods, containers), self._synchronized, limited=False
        )

    def _synchronized(self, result: object) -> Message:
        response = synchronize_response(result)
        self.updates.schedule(map(from_message, split_updates(response)))
        self.observer.synchronized()
        if not self.synchronized.done():
            self.synchronized.set_result(None)
            log.info("plugin.synchronized", updates=len(response.update))
            asyncio.get_running_loop().call_later(SETTLING_TIME, give_back_memory)
        self._leave_the_living_dead()
        return response

    def _leave_the_living_dead(self) -> None:
        # Before NRI 0.7 a Synchronize past the timeout leaves the plugin connected
        # and for ever without events. Only a new session helps.
        request, level = current_request(), self.runtime.level
        if request is None or (level is not None and level >= SPLIT_SYNC):
            return  # where nothing tells the level, it may be an old one
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
            if route.carries_updates:
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
        # Runtimes skip fields they do not know without a word.
        adjustment = result.adjustment if isinstance(result, CreateReply) else result
        level = self.runtime.level
        if level is None or not isinstance(adjustment, ContainerAdjustment):
            return
        if (needed := adjustment.needs_level) > level:
            log.warning("adjustment.too-new", needs=str(needed), runtime=str(level))


def give_back_memory() -> None:
    """Return freed memory to the kernel, where the C library can.

    glibc keeps what was freed for later use. The messages of a large node are
    megabytes in several copies that will not be needed again.

    Source:
        malloc_trim(3).
    """
    import ctypes  # late: nothing else needs it

    # Another C library than glibc has no such function.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
