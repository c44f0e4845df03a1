"""The runtime: a node with a socket for plugins, and a folder of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from google.protobuf.message import Message

from nri_proto import NriLevel
from nri_proto.levels import first_release
from nri_resmgr.testing.errors import StartFailed
from nri_resmgr.testing.launch import PluginProcess
from nri_resmgr.testing.misbehaviour import Misbehaviour
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.pod_requests import PodRequests
from nri_resmgr.testing.profile import Profile, RuntimeOptions
from nri_resmgr.testing.sessions import PluginSessions
from nri_resmgr.testing.tape import RecordedMessage

_SOCKET: Final = "nri.sock"
_BACKLOG: Final = 128
_DEFAULT_LEVEL: Final = NriLevel(0, 12, 1)
_DEFAULTS: Final = RuntimeOptions()


class Runtime(PodRequests):
    """Plays a container runtime with NRI.

    Use it with ``async with``, or call `start` and `stop`: the world stays, so
    a second start is a restart of the runtime.

    Args:
        directory: Where the socket is made.
        level: The NRI release to play, 0.3 to 0.13.
        name: ``containerd`` or ``cri-o``.
        version: Told to plugins; None tells the first release with that level.
        options: Timeouts, folders of plugins and the like.
    """

    def __init__(
        self,
        directory: Path,
        level: NriLevel = _DEFAULT_LEVEL,
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def records(self) -> Sequence[RecordedMessage]:
        """Every message so far, both ways."""
        return tuple(self._sessions.tape.records)

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins that get events, in the order of invocation."""
        active = self.roster.plugins
        return tuple(item.name for item in active if not item.connection.is_closed)

    @property
    def processes(self) -> Sequence[PluginProcess]:
        """The plugins started from the folder, in order."""
        return tuple(self._sessions.processes)

    @property
    def dropped(self) -> Sequence[Exception]:
        """Why plugins did not get to their first event, in order."""
        return tuple(self.roster.dropped)

    def calls_to(self, plugin: str) -> list[str]:
        """Name the calls made to ``NN-name`` so far, in order."""
        return self._sessions.tape.heard_by(plugin)

    def misbehave(self, *wrong: Misbehaviour) -> None:
        """Tell what goes wrong on the next connections, one after the other."""
        self._sessions.misbehaviours.extend(wrong)

    async def start(self) -> None:
        """Launch installed plugins, then listen.

        Raises:
            StartFailed: A plugin's file name is wrong; before level 0.7 any
                plugin that does not start.
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
        """Hang up on everybody; launched plugins are given time to exit."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._sessions.end()

    async def synchronized(self, plugin: str, within: float = 10.0) -> None:
        """Wait until ``NN-name`` gets events.

        Raises:
            TimeoutError: It does not within so many seconds.
        """
        async with asyncio.timeout(within):
            await self.roster.wait_for(plugin)

    async def wait_dropped(self, count: int = 1, within: float = 10.0) -> None:
        """Wait until so many plugins did not get to their first event.

        Raises:
            TimeoutError: It does not happen within so many seconds.
        """
        async with asyncio.timeout(within):
            await self.roster.wait_dropped(count)

    async def gone(self, plugin: str, within: float = 10.0) -> None:
        """Wait until the connection of ``NN-name`` has ended.

        Raises:
            TimeoutError: It does not within so many seconds.
        """
        if (found := self.roster.named(plugin)) is not None:
            async with asyncio.timeout(within):
                await found.connection.wait_closed()

    async def call(self, plugin: str, method: str, request: Message) -> Message:
        """Make any call to ``NN-name``, outside of all rules.

        Raises:
            KeyError: There is no such plugin.
            PluginRefused: It answered with an error.
            PluginLost: It went away, or was too late and got disconnected.
        """
        return await self._named(plugin).call(method, request)

    def write(self, plugin: str, data: bytes) -> None:
        """Write raw bytes to ``NN-name``.

        Raises:
            KeyError: There is no such plugin.
        """
        self._named(plugin).connection.write(data)

    def misbehave_now(self, plugin: str, wrong: Misbehaviour) -> None:
        """Tell what goes wrong from now on with ``NN-name``.

        Raises:
            KeyError: There is no such plugin.
        """
        self._named(plugin).connection.misbehaviour = wrong

    def _named(self, plugin: str) -> ConnectedPlugin:
        found = self.roster.named(plugin)
        if found is None:
            raise KeyError(plugin)
        return found
