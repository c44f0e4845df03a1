"""One session with a runtime: from RegisterPlugin to the end of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from nri_proto import PLUGIN_METHODS, RUNTIME_METHODS, Call, Code, Trunk, nri_pb2
from nri_resmgr.stub.dry_run import withholding
from nri_resmgr.stub.errors import CallFailed, ConfigureMissing, RegistrationRefused
from nri_resmgr.stub.handlers import Handlers
from nri_resmgr.stub.identity import Identity
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.stub.observer import Observer, OnMessage, TappedLink, TimedLink
from nri_resmgr.stub.runner import Overrun, Runner, StatusOf, default_status
from nri_resmgr.stub.service import PluginService
from nri_resmgr.stub.synchronize import SynchronizeChunks
from nri_resmgr.stub.transport import Connector
from nri_resmgr.stub.update_sender import (
    CALL_TIMEOUT,
    UnsolicitedUpdates,
    UpdateCalls,
    UpdateSender,
)

# The NRI version of this stub, sent in RegisterPlugin (NRI >= 0.12).
OUR_NRI_VERSION: Final = "v0.13.0"


class StubOptions(msgspec.Struct, frozen=True):
    """Time limits and choices for a plugin's sessions.

    Attributes:
        registration_timeout: Seconds to wait for RegisterPlugin and Configure. The
            runtime registers plugins one by one: a slow one before this one can take
            its own registration timeout and two request timeouts.
        overrun: What happens to requests with a late asynchronous handler.
        unsolicited_updates: When updates may be sent by calls of UpdateContainers.
        update_timeout: Seconds to wait for the answer to UpdateContainers.
        status_of: Returns status code and message for a handler's exception.
        on_message: Called with every message, both ways; must not raise.
        observer: Receives the steps of sessions and the times of answers.
        reduce_pod: Applied to each pod of a Synchronize as it is read. A node's pods
            can be larger than the node's plugins may be: return a copy without the
            texts that the handler does not use.
        reduce_container: The same for each container.
        config: Text for the ``configure`` handler; None is what the runtime sends.
        dry_run: Whether replies and updates are logged instead of sent.
        waits_for_runtime: Whether an absent runtime is waited for at the first attempt,
            too. By default that is an error, which helps more where the path is wrong.
    """

    registration_timeout: float = 30.0
    overrun: Overrun = Overrun.ANSWER
    unsolicited_updates: UnsolicitedUpdates = UnsolicitedUpdates.AUTO
    update_timeout: float = CALL_TIMEOUT
    status_of: StatusOf = default_status
    on_message: OnMessage | None = None
    observer: Observer | None = None
    reduce_pod: Callable[[Pod], Pod] | None = None
    reduce_container: Callable[[Container], Container] | None = None
    config: str | None = None
    dry_run: bool = False
    waits_for_runtime: bool = False


class Session:
    """Registers the plugin and serves it until the connection ends; not reusable.

    Attributes:
        service: Knows the runtime, and whether the session is synchronized.
        calls: Calls of UpdateContainers.
    """

    def __init__(
        self,
        handlers: Handlers,
        identity: Identity,
        options: StubOptions,
        updates: UpdateSender,
        *,
        may_guess_mask: bool,
    ) -> None:
        self._identity = identity
        self._options = options
        self._link = self._new_link()
        self._runner = Runner(self._link, options.overrun, options.status_of)
        self.calls = UpdateCalls(
            self._link,
            self._runner,
            options.unsolicited_updates,
            options.update_timeout,
            is_dry_run=options.dry_run,
        )
        self._updates = updates
        self.service = PluginService(
            self._runner,
            self.calls,
            updates,
            handlers,
            may_guess_mask,
            options.observer or Observer(),
            SynchronizeChunks(options.reduce_pod, options.reduce_container),
            given_config=options.config,
        )

    async def open(self, connector: Connector) -> None:
        """Connect, register, and wait for Configure.

        Raises:
            SocketUnusable: No runtime listens there.
            RegistrationRefused: The runtime does not accept the name or index.
            ConnectionLost: The runtime hung up before the end.
            CallTimedOut: It did not answer RegisterPlugin in time.
            ConfigureMissing: It answered, but did not send Configure.
            Exception: What the ``configure`` handler raised.
        """
        await connector.connect(lambda: self._link)
        self._updates.connect(self.calls)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.registration_timeout
        try:
            await self._register()
            async with asyncio.timeout_at(deadline):
                await self.reached(self.service.configured)
        except TimeoutError:
            self._clean_up()
            raise ConfigureMissing(self._options.registration_timeout) from None
        except BaseException:
            # A runtime leaves the socket of a refused plugin open.
            self._clean_up()
            raise

    async def reached(self, step: asyncio.Future[None]) -> None:
        """Wait for a step of the service.

        Raises:
            ConnectionLost: The session ended first.
        """
        either = (step, asyncio.shield(self._link.closed))
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not step.done():
            raise self._link.lost()
        step.result()

    async def ended(self) -> str | None:
        """Wait for the end of the connection, clean up, and return the reason."""
        try:
            return await asyncio.shield(self._link.closed)
        finally:
            self._clean_up()

    async def close(self) -> None:
        """Let running handlers finish and answer, then close the connection."""
        await self._runner.drain()
        self._link.close()
        if self._link.is_connected:
            limit = self._runner.request_timeout
            await asyncio.wait({self._link.closed}, timeout=limit)

    def _clean_up(self) -> None:
        self._link.close()
        self._runner.cancel()
        self._updates.disconnect()

    async def _register(self) -> None:
        name, index = self._identity.name, self._identity.index
        request = nri_pb2.RegisterPluginRequest(
            plugin_name=name, plugin_idx=index, NRI_version=OUR_NRI_VERSION
        )
        method = RUNTIME_METHODS["RegisterPlugin"]
        try:
            # Configure may come, and be answered, before this returns.
            await self._link.call(method, request, self._options.registration_timeout)
        except CallFailed as error:
            raise RegistrationRefused(name, index, error.message) from None

    def _new_link(self) -> Link:
        trunk, observer = Trunk.of_plugin(), self._options.observer
        if (tap := self._options.on_message) is not None:
            return TappedLink(trunk, self._on_call, tap, observer)
        if observer is not None:
            return TimedLink(trunk, self._on_call, observer)
        return Link(trunk, self._on_call)

    def _on_call(self, call: Call) -> None:
        try:
            request = PLUGIN_METHODS[call.method].request.FromString(call.payload)
        except DecodeError as error:
            self._link.refuse(call.stream_id, Code.INTERNAL, f"{call.method}: {error}")
            return
        invocation = self.service.invocation(call.method, request)
        if self._options.dry_run:
            status_of = self._options.status_of
            invocation = withholding(invocation, call.method, request, status_of)
        self._runner.start(call, invocation)
