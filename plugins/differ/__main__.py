"""Logs what other plugins change in requests, by sessions before and after them."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Annotated, Final

import msgspec
import structlog

from nri_resmgr.sdk.chain import Chain, ChainSession, Passage
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Identity,
    PluginFlags,
    SocketPath,
    Stub,
    StubOptions,
    add_flags,
    serve,
)
from nri_resmgr.stub.identity import INDEX_VARIABLE
from nri_resmgr.stub.transport import DEFAULT_SOCKET

log = structlog.get_logger(__name__)

NAME: Final = "differ"
FIRST: Final = "00"

Index = Annotated[str, msgspec.Meta(pattern="^[0-9][0-9]$")]


class DifferSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    indices: tuple[Index, ...] = (FIRST, "99")
    socket: str = ""


def log_changes(passage: Passage) -> None:
    """Log what has changed since the session before."""
    for change in passage.changes:
        log.info(
            "request.changed",
            method=passage.method,
            container=passage.container,
            between=f"{passage.since} and {passage.index}",
            field=change.field,
            before=change.before,
            after=change.after,
        )


class Differ(ChainSession, ConfigureHandler):
    """The first session, which starts the others.

    Args:
        index: Its own.
        socket: For the other sessions, unless the document has another one.
    """

    def __init__(self, index: str, socket: str) -> None:
        super().__init__(index, Chain(log_changes))
        self._socket = socket
        self._settings: DifferSettings | None = None
        self._others: dict[asyncio.Task[None], Stub] = {}

    def configure(self, configuration: Configuration) -> None:
        """Have a session for each index; they outlive this one."""
        settings = DifferSettings.read(configuration.text)
        if settings == self._settings:
            return
        self._settings = settings
        for stub in self._others.values():
            stub.stop()
        connector = SocketPath(settings.socket or self._socket)
        options = StubOptions(waits_for_runtime=True)
        for index in sorted({*settings.indices} - {self.index}):
            session = ChainSession(index, self.chain)
            stub = Stub(session, Identity(NAME, index), connector, options)
            task = asyncio.get_running_loop().create_task(stub.run())
            self._others[task] = stub
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        index = self._others.pop(task).identity.index
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("session.lost", index=index, why=str(error))


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser(NAME, description=__doc__)
    add_flags(parser)
    flags = PluginFlags.of(parser.parse_args())
    index = os.environ.get(INDEX_VARIABLE) or flags.index or FIRST
    plugin = Differ(index, flags.socket or DEFAULT_SOCKET)
    serve(plugin, name=NAME, index=FIRST, flags=flags)


if __name__ == "__main__":
    main()
