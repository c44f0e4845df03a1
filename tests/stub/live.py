"""Plugins at a runtime, and runtimes made of a few lines, for as long as a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from nri_proto import Call, NriLevel, Trunk
from nri_resmgr.stub import (
    HANDLER_NAMES,
    Identity,
    OpenSocket,
    Plugin,
    SocketPath,
    Stub,
    StubOptions,
)
from nri_resmgr.testing import Runtime, RuntimeOptions

NAME = "10-py"
_DEFAULTS = StubOptions()
_OPTIONS = RuntimeOptions()
_NEWEST = NriLevel(0, 13)
# Levels that Configure does not contain, by a release that has them.
_OLD_RELEASES = {
    NriLevel(0, 3): "v1.7.0",
    NriLevel(0, 6, 1): "v1.7.20",
    NriLevel(0, 8): "v2.1.0",
    NriLevel(0, 10): "v2.2.0",
    NriLevel(0, 11): "v2.2.1",
}
EVENT_HANDLERS = HANDLER_NAMES[3:]  # without configure, synchronize, shutdown

Script: TypeAlias = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]
]


def stub_at(
    runtime: Runtime | Path, plugin: object, options: StubOptions = _DEFAULTS
) -> Stub:
    """Make a stub for an external plugin called `NAME`."""
    path = runtime if isinstance(runtime, Path) else runtime.socket_path
    return Stub(plugin, Identity.parse(NAME), SocketPath(str(path)), options)


def launched_stub_at(
    runtime: Runtime | Path, plugin: object, options: StubOptions = _DEFAULTS
) -> Stub:
    """Make a stub that has a connected socket, and so cannot reconnect."""
    path = runtime if isinstance(runtime, Path) else runtime.socket_path
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(str(path))
    return Stub(plugin, Identity.parse(NAME), OpenSocket(connected), options)


@asynccontextmanager
async def running(stub: Stub) -> AsyncIterator[asyncio.Task[None]]:
    """Run *stub*; in the end stop it, and raise what it died of."""
    task = asyncio.create_task(stub.run())
    try:
        yield task
    finally:
        stub.stop()
        await task


@asynccontextmanager
async def live(
    runtime: Runtime, plugin: object, options: StubOptions = _DEFAULTS
) -> AsyncIterator[Stub]:
    """Run a plugin called `NAME`, from its first event on."""
    stub = stub_at(runtime, plugin, options)
    async with running(stub):
        await runtime.synchronized(NAME)
        yield stub


def recording(heard: list[str], *names: str) -> Plugin:
    """Make a plugin whose handlers note that they were called."""
    plugin = Plugin()
    for name in names:
        plugin.handler(_note(heard, name))
    return plugin


def _note(heard: list[str], name: str) -> Callable[..., None]:
    def handler(*_: object) -> None:
        heard.append(name)

    handler.__name__ = name
    return handler


@asynccontextmanager
async def scripted(path: Path, script: Script) -> AsyncIterator[None]:
    """Listen at *path* and do with each connection what *script* says."""
    server = await asyncio.start_unix_server(script, path)
    async with server:
        yield


async def first_call(reader: asyncio.StreamReader, trunk: Trunk) -> Call:
    """Read until a call is complete; others that come with it are lost."""
    while data := await reader.read(1 << 16):
        for event in trunk.receive_data(data):
            if isinstance(event, Call):
                return event
    raise EOFError


@asynccontextmanager
async def plugged(
    directory: Path,
    plugin: object,
    level: NriLevel = _NEWEST,
    runtime_options: RuntimeOptions = _OPTIONS,
    options: StubOptions = _DEFAULTS,
) -> AsyncIterator[tuple[Runtime, Stub]]:
    """Start a runtime and run a plugin called `NAME` on it."""
    version = "v2.4.0" if level >= NriLevel(0, 12) else _OLD_RELEASES[level]
    async with (
        Runtime(directory, level, version=version, options=runtime_options) as runtime,
        live(runtime, plugin, options) as stub,
    ):
        yield runtime, stub
