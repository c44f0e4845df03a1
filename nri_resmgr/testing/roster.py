"""The plugins that get events."""

from __future__ import annotations

import asyncio

import attrs

from nri_resmgr.testing.plugin import ConnectedPlugin


@attrs.define(eq=False, repr=False)
class Roster:
    """The plugins that get events, by index.

    Attributes:
        plugins: Those, in the order of invocation.
        dropped: Why others did not get so far.
    """

    plugins: list[ConnectedPlugin] = attrs.field(factory=list)
    dropped: list[Exception] = attrs.field(factory=list)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    def add(self, plugin: ConnectedPlugin) -> None:
        """Put a plugin in its place; ties keep the order in which they came."""
        self.plugins.append(plugin)
        self.plugins.sort(key=lambda plugin: plugin.index)
        self._change()

    def drop_closed(self) -> None:
        """Forget plugins that are gone; kill those the runtime had started."""
        for plugin in [item for item in self.plugins if item.connection.is_closed]:
            self.plugins.remove(plugin)
            if plugin.launched is not None:
                plugin.launched.process.kill()
        self._change()

    def named(self, name: str) -> ConnectedPlugin | None:
        """Find a plugin by ``NN-name``; one whose connection has ended is gone."""
        there = (item for item in self.plugins if not item.connection.is_closed)
        return next((item for item in there if item.name == name), None)

    def note_drop(self, error: Exception) -> None:
        """Keep why a plugin did not get here."""
        self.dropped.append(error)
        self._change()

    async def wait_dropped(self, count: int) -> None:
        """Wait until so many plugins did not get here."""
        while len(self.dropped) < count:
            await self._changed.wait()

    async def wait_for(self, name: str) -> ConnectedPlugin:
        """Wait until a plugin gets events."""
        while (plugin := self.named(name)) is None:
            await self._changed.wait()
        return plugin

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
