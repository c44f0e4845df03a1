"""The main program of a plugin."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys

from nri_resmgr.log.last_words import say, watch_errors
from nri_resmgr.stub.session import StubOptions
from nri_resmgr.stub.stub import Stub
from nri_resmgr.values.errors import ResmgrError
from nri_resmgr.values.exit_status import exit_status
from nri_resmgr.values.printable import printable


def serve(
    plugin: object,
    *,
    name: str | None = None,
    index: str | None = None,
    socket: str | None = None,
    options: StubOptions = StubOptions(),
) -> None:
    """Run a plugin until SIGTERM, SIGINT, or the end of a launching runtime.

    Args:
        plugin: An object with handlers, or a `Plugin` of functions.
        name: Name to register with. That of a runtime that launched the plugin has
            priority. Default: from the program's file name ``NN-name``.
        index: Two digits; likewise.
        socket: Path of the runtime's socket, for a plugin that was not launched by it.
        options: Time limits and choices.

    Raises:
        SystemExit: With status 1 for a failure and 2 for bad input, after one
            sentence on standard error; where that is /dev/null, in the system's log.
    """

    async def run() -> None:
        stub = Stub.from_environment(
            plugin, name=name, index=index, socket=socket, options=options
        )
        await run_until_signal(stub)

    watch_errors()
    # Modules and classes stay for ever: without this the garbage collector scans all of
    # them, 30 ms in the middle of a request.
    gc.freeze()
    try:
        asyncio.run(run())
    except ResmgrError as error:
        say(f"{sys.argv[0]}: {printable(str(error))}")
        raise SystemExit(exit_status(error)) from None


async def run_until_signal(stub: Stub) -> None:
    """Run *stub*; SIGTERM and SIGINT let running handlers finish first."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stub.stop)
    try:
        await stub.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
