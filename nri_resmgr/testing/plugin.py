"""One plugin as the runtime sees it: from RegisterPlugin to its last event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

import msgspec
from google.protobuf.message import Message

from nri_proto import (
    PLUGIN_METHODS,
    Code,
    Event,
    nri_pb2,
)
from nri_proto.levels import DEDICATED_CALLS
from nri_resmgr.testing.connection import PluginConnection
from nri_resmgr.testing.errors import (
    ErrorReply,
    IdentityRejected,
    PluginHungUp,
    PluginLost,
    PluginRefused,
    RegistrationFailed,
)
from nri_resmgr.testing.identity import check_identity
from nri_resmgr.testing.launch import PluginProcess
from nri_resmgr.testing.misbehaviour import SessionStep
from nri_resmgr.testing.profile import Profile
from nri_resmgr.testing.tape import Tape

ApplyUpdates: TypeAlias = Callable[[Sequence[nri_pb2.ContainerUpdate]], Awaitable[None]]


class Launched(msgspec.Struct, frozen=True):
    """What the runtime knows about a plugin that it started itself."""

    index: str
    base: str
    config: str
    process: PluginProcess


class FellSilent(Exception):
    """The runtime was told to say nothing more on a connection."""


class ConnectedPlugin:
    """A session with one plugin.

    Attributes:
        index: Two digits; decides the order of invocation.
        base: Its name without the index.
        mask: The events it subscribed to; 0 until it is configured.
        launched: None for an external plugin.
    """

    def __init__(
        self, profile: Profile, apply_updates: ApplyUpdates, launched: Launched | None
    ) -> None:
        self.index = "" if launched is None else launched.index
        self.base = "" if launched is None else launched.base
        self.mask = 0
        self.launched = launched
        self._profile = profile
        self._apply_updates = apply_updates
        self._is_silent = False
        self._falls_back = profile.level < DEDICATED_CALLS
        self._registered: asyncio.Future[None] = (
            asyncio.get_running_loop().create_future()
        )
        self._configured: asyncio.Future[Message] | None = None
        self._connection: PluginConnection | None = None

    @property
    def name(self) -> str:
        """``NN-name``, as in logs and ownership data."""
        return f"{self.index}-{self.base}" if self.index else self.base

    @property
    def connection(self) -> PluginConnection:
        """The wire to it."""
        if self._connection is None:
            raise PluginHungUp
        return self._connection

    def attach(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tape: Tape
    ) -> PluginConnection:
        """Give the plugin its wire; the caller runs it."""
        self._connection = PluginConnection(reader, writer, self._serve, tape)
        self._connection.plugin = self.name
        return self._connection

    def subscribes(self, event: Event) -> bool:
        """Whether the plugin wants to be asked about an event."""
        return bool(self.mask & event.bit)

    async def register(self) -> None:
        """Wait for RegisterPlugin, configure the plugin, check its mask.

        Raises:
            RegistrationFailed: It never came, was refused, or asked for events
                the runtime does not know.
            PluginLost: The plugin went away.
        """
        options = self._profile.options
        await self.step(SessionStep.CONNECTED)
        hung_up = asyncio.create_task(self.connection.wait_closed())
        try:
            await asyncio.wait(
                (self._registered, hung_up),
                timeout=options.registration_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            hung_up.cancel()
        if not self._registered.done():
            raise RegistrationFailed(self.name, "plugin registration timed out")
        self._registered.result()
        await self.step(SessionStep.REGISTERED)
        configured = self._configured or self._begin_configure()
        await self.step(SessionStep.CONFIGURING)
        await self._end_configure(configured)
        await self.step(SessionStep.CONFIGURED)

    async def ask(self, event: Event, request: Message) -> Message:
        """Send an event that has had a call of its own since its first level.

        Raises:
            PluginRefused: The plugin answered with an error.
            PluginLost: It went away, or was too late and got disconnected.
        """
        return await self._ask(event.method, request)

    async def notify(
        self, event: Event, pod: nri_pb2.PodSandbox, container: nri_pb2.Container | None
    ) -> None:
        """Send an event that older levels send as StateChange.

        A plugin that does not implement the newer call gets StateChange from
        then on, for all events of this connection.

        Raises:
            PluginRefused: The plugin answered with an error.
            PluginLost: It went away, or was too late and got disconnected.
        """
        if not self._falls_back:
            request = PLUGIN_METHODS[event.method].request()
            _fill(request, pod, container)
            try:
                await self._ask(event.method, request)
            except PluginRefused as refusal:
                if refusal.code != Code.UNIMPLEMENTED:
                    raise
                self._falls_back = True
            else:
                return
        change = nri_pb2.StateChangeEvent(event=nri_pb2.Event.Name(event.value))
        _fill(change, pod, container)
        await self._ask("StateChange", change)

    async def call(self, method: str, request: Message) -> Message:
        """Make any call of the Plugin service, outside of all rules.

        Raises:
            PluginRefused: The plugin answered with an error.
            PluginLost: It went away, or was too late and got disconnected.
        """
        return await self._ask(method, request)

    async def step(self, step: SessionStep) -> None:
        """Misbehave, if that is asked for at this step."""
        wrong = self.connection.misbehaviour
        if wrong.hang_up is step:
            self.connection.close()
            raise PluginHungUp
        self._is_silent |= wrong.fall_silent is step
        if self._is_silent:
            raise FellSilent

    async def _ask(self, method_name: str, request: Message) -> Message:
        method = PLUGIN_METHODS[method_name]
        timeout = self._profile.options.request_timeout
        answer = self.connection.begin(method, request, timeout)
        await self.step(SessionStep.EVENT)
        return await self.connection.end(method, answer, timeout)

    async def _serve(self, method: str, request: Message) -> Message:
        match request:
            case nri_pb2.RegisterPluginRequest():
                await self._register(request)
                return nri_pb2.Empty()
            case nri_pb2.UpdateContainersRequest():
                await self._apply_updates(request.update)
                return nri_pb2.UpdateContainersResponse()
        raise ErrorReply(f"method {method}", Code.UNIMPLEMENTED)

    async def _register(self, request: nri_pb2.RegisterPluginRequest) -> None:
        if self._registered.done():
            raise ErrorReply("plugin is already registered")
        if self.launched is None:
            self._identify(request.plugin_idx, request.plugin_name)
        try:
            await self.step(SessionStep.REGISTERING)
            if not self.connection.misbehaviour.reply_first:
                self._configured = self._begin_configure()
        except (PluginLost, FellSilent) as end:
            self._registered.set_exception(end)
            self._registered.exception()  # nobody may be left to ask
            if isinstance(end, FellSilent):
                await self.connection.wait_closed()
            raise ErrorReply("never sent") from end
        self._registered.set_result(None)

    def _identify(self, index: str, name: str) -> None:
        try:
            check_identity(index, name, self._profile.level)
        except IdentityRejected as error:
            self._registered.set_exception(error)
            raise ErrorReply(error.why) from error
        self.index, self.base = index, name
        self.connection.plugin = self.name

    def _begin_configure(self) -> asyncio.Future[Message]:
        config = "" if self.launched is None else self.launched.config
        return self.connection.begin(
            PLUGIN_METHODS["Configure"],
            self._profile.configure_request(config),
            self._profile.options.request_timeout,
        )

    async def _end_configure(self, answer: asyncio.Future[Message]) -> None:
        reply = await self.connection.end(
            PLUGIN_METHODS["Configure"],
            answer,
            self._profile.options.request_timeout,
        )
        events = cast("nri_pb2.ConfigureResponse", reply).events
        known = self._profile.level.event_mask
        if events & ~known:
            raise RegistrationFailed(self.name, f"invalid plugin events: 0x{events:x}")
        self.mask = events or known


def _fill(
    request: Message, pod: nri_pb2.PodSandbox, container: nri_pb2.Container | None
) -> None:
    request.pod.CopyFrom(pod)  # type: ignore[attr-defined]  # all events have it
    if container is not None:
        request.container.CopyFrom(container)  # type: ignore[attr-defined]  # same
