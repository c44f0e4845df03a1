"""Plugins that run during a test: in this process, or as a program."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE, Identity
from nri_resmgr.stub.session import StubOptions
from nri_resmgr.stub.stub import Stub
from nri_resmgr.stub.transport import SocketPath
from nri_resmgr.testing.runtime import Runtime

_STDERR: Final = 2

# As launched plugins have at the end of their runtime.
_GRACE: Final = 5.0  # seconds

_NONE: Final[Mapping[str, str]] = {}


@dataclass(eq=False)
class PluginEnded(Exception):
    """A plugin ended before the runtime had synchronized it."""

    exit_status: int | None
    output: str

    def __str__(self) -> str:
        return f"the plugin ended with status {self.exit_status}: {self.output}"


@asynccontextmanager
async def running_plugin(
    runtime: Runtime,
    plugin: object,
    identity: str = "10-plugin",
    *,
    config: str | None = None,
    options: StubOptions = StubOptions(),
) -> AsyncIterator[Stub]:
    """Run a plugin of `nri_resmgr.stub` in this process.

    Args:
        runtime: A started runtime.
        plugin: An object with handlers, or a `Plugin` of functions.
        identity: ``NN-name`` to register with.
        config: Text for the ``configure`` handler; that of *options* by default.
        options: Time limits and choices, such as a dry run.

    Yields:
        The plugin's stub, after the plugin was synchronized.

    Raises:
        SessionError: The plugin could not register.
        PluginEnded: The plugin was stopped before.
    """
    connector = SocketPath(str(runtime.socket_path))
    if config is not None:
        options = msgspec.structs.replace(options, config=config)
    stub = Stub(plugin, Identity.parse(identity), connector, options)
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


class PluginRunner:
    """Runs plugins of `nri_resmgr.stub` until its own end.

    It is what the fixture ``running_plugin`` of pytest returns. Use it with
    ``async with``.

    Args:
        runtime: A started runtime.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    async def __call__(
        self,
        plugin: object,
        identity: str = "10-plugin",
        *,
        config: str | None = None,
        options: StubOptions = StubOptions(),
    ) -> Stub:
        """Start a plugin, as `running_plugin` does; return its stub once synchronized.

        Raises:
            SessionError: The plugin could not register.
            PluginEnded: The plugin was stopped before.
        """
        return await self._running.enter_async_context(
            running_plugin(
                self._runtime, plugin, identity, config=config, options=options
            )
        )


@asynccontextmanager
async def plugin_process(
    runtime: Runtime,
    *command: str,
    identity: str = "10-plugin",
    within: float = 10.0,
    environment: Mapping[str, str] = _NONE,
    shows_output: bool = False,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a plugin program that connects to the runtime's socket.

    NRI's two variables give the program its identity. The command must have an argument
    for the socket: `Runtime.socket_path`.

    Args:
        runtime: A started runtime.
        command: The program and its arguments.
        identity: ``NN-name`` to register with.
        within: Seconds until it has to be synchronized.
        environment: Further variables.
        shows_output: Whether its output goes to standard error of this process, and is
            no part of `PluginEnded`.

    Yields:
        The process, after the plugin was synchronized. SIGTERM ends it afterwards, or
        SIGKILL after five seconds.

    Raises:
        PluginEnded: The program ended before.
        TimeoutError: It was not synchronized in time.
    """
    registered = Identity.parse(identity)
    process = await asyncio.create_subprocess_exec(
        *command,
        env={
            **os.environ,
            **environment,
            NAME_VARIABLE: registered.name,
            INDEX_VARIABLE: registered.index,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=_STDERR if shows_output else asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = asyncio.create_task(process.communicate())
    try:
        await _first(output, runtime.synchronized(identity, within))
        if process.returncode is not None:
            text = (output.result()[0] or b"").decode(errors="replace").strip()
            raise PluginEnded(process.returncode, text)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        # A handler that hangs has the program ignore SIGTERM.
        await asyncio.wait({output}, timeout=_GRACE)
        if not output.done():
            process.kill()
        await output


async def _first(
    running: asyncio.Task[object], synchronized: Coroutine[None, None, None]
) -> None:
    waiting = asyncio.create_task(synchronized)
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        waiting.result()
    waiting.cancel()
