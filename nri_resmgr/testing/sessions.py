"""Connections to plugins: accepted or launched, until their first event."""

from __future__ import annotations

import asyncio
import collections
import socket
from collections.abc import Coroutine
from typing import Final

from nri_proto.levels import SPLIT_SYNC
from nri_resmgr.testing.connection import PluginConnection
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
from nri_resmgr.testing.node import Node
from nri_resmgr.testing.plugin import ConnectedPlugin, FellSilent, Launched
from nri_resmgr.testing.synchronizing import synchronize
from nri_resmgr.testing.tape import Tape

# How a plugin's way to its first event may end early.
_DROPPED: Final = (PluginLost, PluginRefused, RegistrationFailed, UpdatesFailed)


class PluginSessions:
    """All connections of one runtime, from its start to its stop.

    Attributes:
        tape: Every message on them.
        processes: Plugins started from the folder.
        misbehaviours: What goes wrong on the next connections.
    """

    def __init__(self, node: Node) -> None:
        self.tape = Tape(node.profile.options.records)
        self.processes: list[PluginProcess] = []
        self.misbehaviours: collections.deque[Misbehaviour] = collections.deque()
        self._node = node
        self._connections: list[PluginConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: list[BaseException] = []

    def listen(self, listener: socket.socket) -> None:
        """Accept external plugins from now on."""
        self._spawn(self._accept(listener))

    async def end(self) -> None:
        """Hang up on everybody; launched plugins are given time to exit."""
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
        # A fault of the test runtime itself must not pass for a quiet plugin.
        faults, self._faults = self._faults, []
        for fault in faults:
            raise fault

    async def start_installed(self) -> None:
        """Launch the plugins of the folder, then synchronize them all.

        Raises:
            StartFailed: A file's name is wrong, or its drop-in file unreadable;
                before level 0.7 also any plugin that does not start.
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
            # Before 0.7 nobody synchronizes them.
            if not may_fail or await self._synchronize(plugin):
                self._node.roster.add(plugin)

    async def _accept(self, listener: socket.socket) -> None:
        # One after the other, as Go's runtime: whoever is slow delays the rest.
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
        plugin = self._new_plugin(
            Launched(installed.index, installed.base, installed.config, process)
        )
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
            return False  # the connection stays open, and nothing comes
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
            # Before 0.7 the plugin stays connected and is never heard of again.
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
