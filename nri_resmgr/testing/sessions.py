"""Connections of plugins, accepted or launched, from the start to synchronized."""

from __future__ import annotations

import asyncio
import collections
import socket
from collections.abc import Coroutine
from typing import Final

from nri_proto.levels import SPLIT_SYNC
from nri_resmgr.testing.connection import PluginConnection
from nri_resmgr.testing.cri_service import CriService
from nri_resmgr.testing.errors import (
    IdentityRejected,
    PluginLost,
    PluginRefused,
    RegistrationFailed,
    StartFailed,
    UpdatesFailed,
)
from nri_resmgr.testing.launch import Installed, PluginProcess, discover, launch
from nri_resmgr.testing.misbehaviour import GOOD, Misbehaviour
from nri_resmgr.testing.plugin import ConnectedPlugin, FellSilent, Launched
from nri_resmgr.testing.synchronizing import synchronize
from nri_resmgr.testing.tape import Tape

# Errors of plugins before their first event.
_DROPPED: Final = (PluginLost, PluginRefused, RegistrationFailed, UpdatesFailed)


class PluginSessions:
    """All connections of one runtime, from its start to its stop.

    Attributes:
        tape: The recorded messages.
        processes: The launched plugins.
        misbehaviours: Misbehaviours of the next connections.
    """

    def __init__(self, node: CriService) -> None:
        self.tape = Tape(node.profile.options.records)
        self.processes: list[PluginProcess] = []
        self.misbehaviours: collections.deque[Misbehaviour] = collections.deque()
        self._node = node
        self._connections: list[PluginConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: list[BaseException] = []

    def listen(self, listener: socket.socket) -> None:
        """Start to accept external plugins."""
        self._spawn(self._accept(listener))

    async def end(self) -> None:
        """Close all connections; launched plugins get time to exit."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections:
            await connection.finish()
        grace = self._node.profile.options.grace
        await asyncio.gather(*(process.end(grace) for process in self.processes))
        self._connections.clear()
        self._node.roster.drop_closed()
        # An error of the test runtime itself must fail the test.
        faults, self._faults = self._faults, []
        for fault in faults:
            raise fault

    async def start_installed(self) -> None:
        """Launch the plugins of the folder, then synchronize them all.

        Raises:
            StartFailed: A file's name is not valid, or its drop-in file unreadable;
                before level 0.7 also if a plugin does not start.
        """
        self.processes.clear()
        options = self._node.profile.options
        if options.plugin_folder is None:
            return
        may_fail = self._node.profile.level >= SPLIT_SYNC
        started = []
        for installed in discover(options.plugin_folder, options.config_folder):
            plugin = await self._launch(installed)
            if plugin is not None:
                started.append(plugin)
            elif not may_fail:
                raise StartFailed(str(self._node.roster.dropped[-1]))
        for plugin in started:
            # Before 0.7 runtimes do not synchronize the plugins that they launch.
            if not may_fail or await self._synchronize(plugin):
                self._node.roster.add(plugin)

    async def _accept(self, listener: socket.socket) -> None:
        # One after the other, as in Go's runtime: a slow plugin delays the next ones.
        loop = asyncio.get_running_loop()
        while True:
            connected, _ = await loop.sock_accept(listener)
            plugin = self._new_plugin(None)
            if await self._admit(plugin, connected):
                async with self._node.lock:
                    if await self._synchronize(plugin):
                        self._node.roster.add(plugin)

    async def _launch(self, installed: Installed) -> ConnectedPlugin | None:
        try:
            process, connected = launch(
                installed, self._node.profile.options.plugin_output
            )
        except StartFailed as error:
            self._node.roster.note_drop(error)
            return None
        self.processes.append(process)
        plugin = self._new_plugin(Launched(installed, process))
        return plugin if await self._admit(plugin, connected) else None

    def _new_plugin(self, launched: Launched | None) -> ConnectedPlugin:
        return ConnectedPlugin(self._node.profile, self._node.serve_updates, launched)

    async def _admit(self, plugin: ConnectedPlugin, connected: socket.socket) -> bool:
        reader, writer = await asyncio.open_unix_connection(sock=connected)
        connection = plugin.attach(reader, writer, self.tape)
        connection.misbehaviour = (
            self.misbehaviours.popleft() if self.misbehaviours else GOOD
        )
        self._connections.append(connection)
        self._spawn(connection.run())
        try:
            await plugin.register()
        except FellSilent:
            return False  # the connection stays open, without messages
        except IdentityRejected as error:
            self._node.roster.note_drop(error)  # Go leaves the socket open
            return False
        except _DROPPED as error:
            self._drop(plugin, error)
            return False
        return True

    async def _synchronize(self, plugin: ConnectedPlugin) -> bool:
        try:
            updates = await synchronize(
                plugin, self._node.profile, *self._node.world.snapshot()
            )
            self._node.apply(updates, must_work=self._node.profile.is_crio)
        except FellSilent:
            return False
        except _DROPPED as error:
            # Before 0.7 the plugin stays connected and never gets an event.
            if self._node.profile.level >= SPLIT_SYNC:
                self._drop(plugin, error)
            else:
                self._node.roster.note_drop(error)
            return False
        return True

    def _drop(self, plugin: ConnectedPlugin, error: Exception) -> None:
        self._node.roster.note_drop(error)
        plugin.connection.close()
        if plugin.launched is not None:
            plugin.launched.process.kill()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._faults.append(error)
