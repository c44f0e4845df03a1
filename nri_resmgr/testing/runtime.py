"""The test runtime: serves CRI requests, plugins at a socket, and launched plugins."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from google.protobuf.message import Message

from nri_proto import NriLevel
from nri_proto.levels import first_release
from nri_resmgr.testing.cri_service import CriService
from nri_resmgr.testing.errors import StartFailed
from nri_resmgr.testing.launch import PluginProcess
from nri_resmgr.testing.misbehaviour import Misbehaviour
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.profile import Profile, RuntimeOptions
from nri_resmgr.testing.sessions import PluginSessions
from nri_resmgr.testing.tape import RecordedMessage

_SOCKET: Final = "nri.sock"
_BACKLOG: Final = 128
DEFAULT_LEVEL: Final = NriLevel(0, 12, 1)
"""The NRI release of a test runtime that names none."""

_DEFAULTS: Final = RuntimeOptions()


class Runtime(CriService):
    """Emulates a container runtime with NRI.

    Use it with ``async with``, or call `start` and `stop`. Pods and containers survive
    `stop`, so a second `start` is a restart of the runtime. What waits raises
    `TimeoutError` after *within* seconds; what acts on a plugin that is not connected
    raises `KeyError`.

    Args:
        directory: Directory for the socket.
        level: The NRI release to emulate, 0.3 to 0.13.
        name: ``containerd`` or ``cri-o``.
        version: Version in Configure; None is the first release with that level.
        options: Timeouts, folders of plugins and the like.

    Attributes:
        socket_path: The socket that plugins connect to.
    """

    def __init__(
        self,
        directory: Path,
        level: NriLevel = DEFAULT_LEVEL,
        name: str = "containerd",
        version: str | None = None,
        options: RuntimeOptions = _DEFAULTS,
    ) -> None:
        version = version or first_release(name, level)
        super().__init__(Profile(level, name, version, options))
        self.socket_path = directory / _SOCKET
        self._listener: socket.socket | None = None
        self._sessions = PluginSessions(self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def records(self) -> Sequence[RecordedMessage]:
        """All messages, both ways, in order."""
        return tuple(self._sessions.tape.records)

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins that get events, in the order of invocation."""
        active = self.roster.plugins
        return tuple(item.name for item in active if not item.connection.is_closed)

    @property
    def processes(self) -> Sequence[PluginProcess]:
        """The plugins launched from the folder, in order."""
        return tuple(self._sessions.processes)

    @property
    def dropped(self) -> Sequence[Exception]:
        """Errors of plugins that failed before their first event, in order."""
        return tuple(self.roster.dropped)

    def calls_to(self, plugin: str) -> list[str]:
        """Return the names of the calls made to ``NN-name``, in order."""
        return self._sessions.tape.calls_to(plugin)

    def misbehave(self, *wrong: Misbehaviour) -> None:
        """Set the misbehaviours of the next connections, one for each."""
        self._sessions.misbehaviours.extend(wrong)

    async def start(self) -> None:
        """Launch installed plugins, then listen.

        Raises:
            StartFailed: A plugin's file name is not valid; before level 0.7 also if a
                plugin does not start.
        """
        try:
            await self._sessions.start_installed()
        except StartFailed:
            await self.stop()
            raise
        self.socket_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket_path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(str(self.socket_path))
        self._listener.listen(_BACKLOG)
        self._sessions.listen(self._listener)

    async def stop(self) -> None:
        """Close all connections; launched plugins get the grace period to exit."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._sessions.end()

    async def synchronized(self, plugin: str, within: float = 10.0) -> None:
        """Wait until ``NN-name`` gets events."""
        async with asyncio.timeout(within):
            await self.roster.until(lambda: self.roster.named(plugin))

    async def wait_dropped(self, count: int = 1, within: float = 10.0) -> None:
        """Wait until *count* plugins have failed before their first event."""
        async with asyncio.timeout(within):
            await self.roster.until(lambda: len(self.dropped) >= count)

    async def gone(self, plugin: str, within: float = 10.0) -> None:
        """Wait until the connection of ``NN-name`` has ended."""
        if (found := self.roster.named(plugin)) is not None:
            async with asyncio.timeout(within):
                await found.connection.wait_closed()

    async def call(self, plugin: str, method: str, request: Message) -> Message:
        """Make any call to ``NN-name``, whether a runtime would make it or not.

        Raises:
            PluginRefused: It answered with an error.
            PluginLost: The connection ended, or the plugin was too late.
        """
        return await self._named(plugin).call(method, request)

    def write(self, plugin: str, data: bytes) -> None:
        """Write raw bytes to ``NN-name``."""
        self._named(plugin).connection.write(data)

    def misbehave_now(self, plugin: str, wrong: Misbehaviour) -> None:
        """Set the misbehaviour on the present connection to ``NN-name``."""
        self._named(plugin).connection.misbehaviour = wrong

    def _named(self, plugin: str) -> ConnectedPlugin:
        found = self.roster.named(plugin)
        if found is None:
            raise KeyError(plugin)
        return found
