"""Plugins at the runtime's socket for the length of a test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE, Identity
from nri_resmgr.stub.stub import Stub
from nri_resmgr.stub.transport import SocketPath
from nri_resmgr.testing.runtime import Runtime


@dataclass(eq=False)
class PluginEnded(Exception):
    """A plugin's process ended before the runtime had synchronized it."""

    exit_status: int | None
    output: str

    def __str__(self) -> str:
        return f"the plugin ended with status {self.exit_status}: {self.output}"


@asynccontextmanager
async def running_plugin(
    runtime: Runtime, plugin: object, identity: str = "10-plugin"
) -> AsyncIterator[Stub]:
    """Run a plugin of `nri_resmgr.stub` in this process.

    Args:
        runtime: A runtime that has been started.
        plugin: What a `Stub` takes: an object with handlers.
        identity: ``NN-name`` to register as.

    Yields:
        Its stub, once the plugin gets events.

    Raises:
        SessionError: The plugin could not register.
        PluginEnded: The plugin stopped before it got that far.
    """
    connector = SocketPath(str(runtime.socket_path))
    stub = Stub(plugin, Identity.parse(identity), connector)
    running = asyncio.create_task(stub.run())
    try:
        await _first(running, runtime.synchronized(identity))
        if running.done():
            running.result()  # raises what ended it
            raise PluginEnded(None, "its stub was stopped")
        yield stub
    finally:
        stub.stop()
        await running


@asynccontextmanager
async def plugin_process(
    runtime: Runtime, *command: str, identity: str = "10-plugin"
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a plugin program, external to the runtime.

    The program learns its identity by NRI's two variables. Where the socket is,
    the command has to tell it: `Runtime.socket_path`.

    Args:
        runtime: A runtime that has been started.
        command: The program and its arguments.
        identity: ``NN-name`` to register as.

    Yields:
        The process, once the plugin gets events. It is ended by SIGTERM.

    Raises:
        PluginEnded: The program ended without getting that far.
    """
    who = Identity.parse(identity)
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, NAME_VARIABLE: who.name, INDEX_VARIABLE: who.index},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = asyncio.create_task(process.communicate())
    try:
        await _first(output, runtime.synchronized(identity))
        if process.returncode is not None:
            text = output.result()[0].decode(errors="replace").strip()
            raise PluginEnded(process.returncode, text)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await output


async def _first(
    running: asyncio.Task[object], synchronized: Coroutine[None, None, None]
) -> None:
    waiting = asyncio.create_task(synchronized)
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        waiting.result()
    waiting.cancel()
