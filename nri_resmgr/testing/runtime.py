"""The runtime: a node with a socket for plugins, and a folder of them."""

from __future__ import annotations

import asyncio
import collections
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from google.protobuf.message import Message

from nri_proto import Level
from nri_proto.levels import SPLIT_SYNC
from nri_resmgr.testing.connection import PluginConnection
from nri_resmgr.testing.errors import (
    BadIdentity,
    PluginLost,
    PluginRefused,
    RegistrationFailed,
    StartFailed,
    UpdatesFailed,
)
from nri_resmgr.testing.launch import Installed, PluginProcess, discover, launch
from nri_resmgr.testing.misbehaviour import GOOD, Misbehaviour
from nri_resmgr.testing.node import Node
from nri_resmgr.testing.plugin import ConnectedPlugin, FellSilent, Launched
from nri_resmgr.testing.profile import Options, Profile
from nri_resmgr.testing.synchronizing import synchronize
from nri_resmgr.testing.tape import Record, Tape

_SOCKET: Final = "nri.sock"
_BACKLOG: Final = 128
_DEFAULT_LEVEL: Final = Level(0, 12, 1)
_DEFAULTS: Final = Options()

# How a plugin's way to its first event may end early.
_DROPPED: Final = (PluginLost, PluginRefused, RegistrationFailed, UpdatesFailed)


class Runtime(Node):
    """Plays a container runtime with NRI.

    Use it with ``async with``, or call `start` and `stop`: the world stays, so
    a second start is a restart of the runtime.

    Args:
        directory: Where the socket is made.
        level: The NRI release to play, 0.3 to 0.13.
        name: ``containerd`` or ``cri-o``.
        version: Told to plugins.
        options: Timeouts, folders of plugins and the like.
    """

    def __init__(
        self,
        directory: Path,
        level: Level = _DEFAULT_LEVEL,
        name: str = "containerd",
        version: str = "v2.4.0",
        options: Options = _DEFAULTS,
    ) -> None:
        super().__init__(Profile(level, name, version, options))
        self.socket_path = directory / _SOCKET
        self.dropped: list[Exception] = []
        self._tape = Tape()
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: list[BaseException] = []
        self._connections: list[PluginConnection] = []
        self._processes: list[PluginProcess] = []
        self._misbehaviours: collections.deque[Misbehaviour] = collections.deque()

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
    def records(self) -> Sequence[Record]:
        """Every message so far, both ways."""
        return tuple(self._tape.records)

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins that get events, in the order of invocation."""
        active = self._roster.plugins
        return tuple(item.name for item in active if not item.connection.is_closed)

    @property
    def processes(self) -> Sequence[PluginProcess]:
        """The plugins started from the folder, in order."""
        return tuple(self._processes)

    def calls_to(self, plugin: str) -> list[str]:
        """Name the calls made to ``NN-name`` so far, in order."""
        return self._tape.heard_by(plugin)

    def misbehave(self, *wrong: Misbehaviour) -> None:
        """Tell what goes wrong on the next connections, one after the other."""
        self._misbehaviours.extend(wrong)

    async def start(self) -> None:
        """Launch installed plugins, then listen.

        Raises:
            StartFailed: A plugin's file name is wrong; before level 0.7 any
                plugin that does not start.
        """
        try:
            await self._start_installed()
        except StartFailed:
            await self.stop()
            raise
        self.socket_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket_path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(str(self.socket_path))
        self._listener.listen(_BACKLOG)
        self._spawn(self._accept(self._listener))

    async def stop(self) -> None:
        """Hang up on everybody; launched plugins are given time to exit."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self._connections:
            await connection.finish()
        grace = self._profile.options.grace
        await asyncio.gather(*(process.end(grace) for process in self._processes))
        self._connections.clear()
        self._roster.drop_closed()
        # A fault of the test runtime itself must not pass for a quiet plugin.
        faults, self._faults = self._faults, []
        for fault in faults:
            raise fault

    async def synchronized(self, plugin: str, within: float = 10.0) -> None:
        """Wait until ``NN-name`` gets events.

        Raises:
            TimeoutError: It does not within so many seconds.
        """
        async with asyncio.timeout(within):
            await self._roster.wait_for(plugin)

    async def gone(self, plugin: str, within: float = 10.0) -> None:
        """Wait until the connection of ``NN-name`` has ended.

        Raises:
            TimeoutError: It does not within so many seconds.
        """
        if (found := self._roster.named(plugin)) is not None:
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

    async def _accept(self, listener: socket.socket) -> None:
        # One after the other, as Go's runtime: whoever is slow delays the rest.
        loop = asyncio.get_running_loop()
        while True:
            connected, _ = await loop.sock_accept(listener)
            plugin = self._new_plugin(None)
            if await self._admit(plugin, connected):
                async with self._lock:
                    if await self._synchronize(plugin):
                        self._roster.add(plugin)

    async def _start_installed(self) -> None:
        self._processes.clear()
        options = self._profile.options
        if options.plugin_folder is None:
            return
        may_fail = self._profile.level >= SPLIT_SYNC
        started = []
        for installed in discover(options.plugin_folder, options.config_folder):
            plugin = await self._launch(installed)
            if plugin is not None:
                started.append(plugin)
            elif not may_fail:
                raise StartFailed(str(self.dropped[-1]))
        for plugin in started:
            # Before 0.7 nobody synchronizes them.
            if not may_fail or await self._synchronize(plugin):
                self._roster.add(plugin)

    async def _launch(self, installed: Installed) -> ConnectedPlugin | None:
        try:
            process, connected = launch(installed, self._profile.options.plugin_output)
        except StartFailed as error:
            self.dropped.append(error)
            return None
        self._processes.append(process)
        plugin = self._new_plugin(
            Launched(installed.index, installed.base, installed.config, process)
        )
        return plugin if await self._admit(plugin, connected) else None

    def _named(self, plugin: str) -> ConnectedPlugin:
        found = self._roster.named(plugin)
        if found is None:
            raise KeyError(plugin)
        return found

    def _new_plugin(self, launched: Launched | None) -> ConnectedPlugin:
        return ConnectedPlugin(self._profile, self._serve_updates, launched)

    async def _admit(self, plugin: ConnectedPlugin, connected: socket.socket) -> bool:
        reader, writer = await asyncio.open_unix_connection(sock=connected)
        connection = plugin.attach(reader, writer, self._tape)
        connection.misbehaviour = (
            self._misbehaviours.popleft() if self._misbehaviours else GOOD
        )
        self._connections.append(connection)
        self._spawn(connection.run())
        try:
            await plugin.register()
        except FellSilent:
            return False  # the connection stays open, and nothing comes
        except BadIdentity as error:
            self.dropped.append(error)  # Go leaves the socket open
            return False
        except _DROPPED as error:
            self._drop(plugin, error)
            return False
        return True

    async def _synchronize(self, plugin: ConnectedPlugin) -> bool:
        try:
            updates = await synchronize(plugin, self._profile, *self.world.snapshot())
            self._apply(updates, must_work=self._profile.is_crio)
        except FellSilent:
            return False
        except _DROPPED as error:
            # Before 0.7 the plugin stays connected and is never heard of again.
            if self._profile.level >= SPLIT_SYNC:
                self._drop(plugin, error)
            else:
                self.dropped.append(error)
            return False
        return True

    def _drop(self, plugin: ConnectedPlugin, error: Exception) -> None:
        self.dropped.append(error)
        plugin.connection.close()
        if plugin.launched is not None:
            plugin.launched.process.kill()

    def _spawn(self, work: collections.abc.Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._faults.append(error)
