"""Plugins as the runtime sees them: from RegisterPlugin to their last event."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, cast

import attrs
import msgspec
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, Code, Event, NriLevel, nri_pb2
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
from nri_resmgr.testing.launch import Installed, PluginProcess
from nri_resmgr.testing.misbehaviour import SessionStep
from nri_resmgr.testing.profile import Profile
from nri_resmgr.testing.tape import Tape

ApplyUpdates: TypeAlias = Callable[[Sequence[nri_pb2.ContainerUpdate]], Awaitable[None]]

_CONFIGURE: Final = PLUGIN_METHODS["Configure"]

# Source: nri, pkg/api/plugin.go; the name rule came with level 0.12.
_INDEX: Final = re.compile(r"[0-9][0-9]")
_NAME: Final = re.compile(r"[A-Za-z0-9_.+-]+")


class Launched(msgspec.Struct, frozen=True):
    """The runtime's record of a plugin that it launched itself."""

    file: Installed
    process: PluginProcess


class FellSilent(Exception):
    """The runtime sends nothing more on a connection, as its test requests."""


class ConnectedPlugin:
    """A session with one plugin.

    Attributes:
        index: Two digits; plugins are called in the order of their indices.
        base: Its name without the index.
        mask: The events that it subscribed to; 0 until it is configured.
        launched: None for an external plugin.
    """

    def __init__(
        self, profile: Profile, apply_updates: ApplyUpdates, launched: Launched | None
    ) -> None:
        self.index = "" if launched is None else launched.file.index
        self.base = "" if launched is None else launched.file.base
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
        """``NN-name``, as in logs and in the owners of fields."""
        return f"{self.index}-{self.base}" if self.index else self.base

    @property
    def connection(self) -> PluginConnection:
        """The connection to the plugin.

        Raises:
            PluginHungUp: There is none yet.
        """
        if self._connection is None:
            raise PluginHungUp
        return self._connection

    def attach(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tape: Tape
    ) -> PluginConnection:
        """Create the plugin's connection; the caller runs it."""
        self._connection = PluginConnection(reader, writer, self._serve, tape)
        self._connection.plugin = self.name
        return self._connection

    def subscribes(self, event: Event) -> bool:
        """Return whether the plugin has subscribed to an event."""
        return bool(self.mask & event.bit)

    async def register(self) -> None:
        """Wait for RegisterPlugin, configure the plugin, check its mask.

        Raises:
            RegistrationFailed: RegisterPlugin did not come or was refused, or the mask
                has events that the runtime does not know.
            PluginLost: The connection ended, or the plugin was too late.
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
        timeout = options.request_timeout
        reply = await self.connection.end(_CONFIGURE, configured, timeout)
        events = cast("nri_pb2.ConfigureResponse", reply).events
        known = self._profile.level.event_mask
        if events & ~known:
            raise RegistrationFailed(self.name, f"invalid plugin events: 0x{events:x}")
        self.mask = events or known
        await self.step(SessionStep.CONFIGURED)

    async def notify(
        self, event: Event, pod: nri_pb2.PodSandbox, container: nri_pb2.Container | None
    ) -> None:
        """Send an event that older levels send as StateChange.

        A plugin that does not implement the newer call gets StateChange from then on,
        for all events of this connection.

        Raises:
            PluginRefused: The plugin answered with an error.
            PluginLost: The connection ended, or the plugin was too late.
        """
        if not self._falls_back:
            request = PLUGIN_METHODS[event.method].request()
            _fill(request, pod, container)
            try:
                await self.call(event.method, request)
            except PluginRefused as refusal:
                if refusal.code != Code.UNIMPLEMENTED:
                    raise
                self._falls_back = True
            else:
                return
        change = nri_pb2.StateChangeEvent(event=nri_pb2.Event.Name(event.value))
        _fill(change, pod, container)
        await self.call("StateChange", change)

    async def call(self, name: str, request: Message) -> Message:
        """Make any call of the Plugin service, whether a runtime would make it or not.

        Raises:
            PluginRefused: The plugin answered with an error.
            PluginLost: The connection ended, or the plugin was too late.
        """
        method = PLUGIN_METHODS[name]
        timeout = self._profile.options.request_timeout
        answer = self.connection.begin(method, request, timeout)
        await self.step(SessionStep.EVENT)
        return await self.connection.end(method, answer, timeout)

    async def step(self, step: SessionStep) -> None:
        """Carry out the misbehaviour that is set for this step."""
        wrong = self.connection.misbehaviour
        if wrong.hang_up is step:
            self.connection.close()
            raise PluginHungUp
        self._is_silent |= wrong.fall_silent is step
        if self._is_silent:
            raise FellSilent

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
            self._registered.exception()  # mark it as retrieved: there may be no waiter
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
        config = "" if self.launched is None else self.launched.file.config
        return self.connection.begin(
            _CONFIGURE,
            self._profile.configure_request(config),
            self._profile.options.request_timeout,
        )


def check_identity(index: str, name: str, level: NriLevel) -> None:
    """Check the name and index with which an external plugin registers.

    Raises:
        IdentityRejected: The runtime refuses it.
    """
    is_strict = level >= DEDICATED_CALLS
    if not (_NAME.fullmatch(name) if is_strict else name):
        raise IdentityRejected(name, f"invalid plugin name: {name!r}")
    if _INDEX.fullmatch(index) is None:
        raise IdentityRejected(name, f"invalid plugin index: {index!r}")


def _fill(
    request: Message, pod: nri_pb2.PodSandbox, container: nri_pb2.Container | None
) -> None:
    request.pod.CopyFrom(pod)  # type: ignore[attr-defined]  # all events have it
    if container is not None:
        request.container.CopyFrom(container)  # type: ignore[attr-defined]  # same


@attrs.define(eq=False, repr=False)
class Roster:
    """The plugins that get events.

    Attributes:
        plugins: The plugins in the order of invocation.
        dropped: Errors of plugins that failed before their first event.
    """

    plugins: list[ConnectedPlugin] = attrs.field(factory=list)
    dropped: list[Exception] = attrs.field(factory=list)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    def add(self, plugin: ConnectedPlugin) -> None:
        """Add a plugin by its index; equal indices keep the order of registration."""
        self.plugins.append(plugin)
        self.plugins.sort(key=lambda plugin: plugin.index)
        self._change()

    def drop_closed(self) -> None:
        """Remove plugins without a connection; kill those that the runtime launched."""
        for plugin in [item for item in self.plugins if item.connection.is_closed]:
            self.plugins.remove(plugin)
            if plugin.launched is not None:
                plugin.launched.process.kill()
        self._change()

    def named(self, name: str) -> ConnectedPlugin | None:
        """Find a connected plugin by ``NN-name``."""
        connected = (item for item in self.plugins if not item.connection.is_closed)
        return next((item for item in connected if item.name == name), None)

    def note_drop(self, error: Exception) -> None:
        """Record the error of a plugin that failed before its first event."""
        self.dropped.append(error)
        self._change()

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until a condition of these plugins holds."""
        while not is_so():
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
