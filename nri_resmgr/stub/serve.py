"""The main program of a plugin."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys

import msgspec

from nri_resmgr.log.last_words import say, watch_errors
from nri_resmgr.stub.flags import (
    BadConfigFile,
    PluginFlags,
    parse_flags,
    read_config,
)
from nri_resmgr.stub.handlers import Handlers
from nri_resmgr.stub.session import StubOptions
from nri_resmgr.stub.stub import Stub
from nri_resmgr.values.errors import ResmgrError
from nri_resmgr.values.exit_status import exit_status
from nri_resmgr.values.printable import printable


def serve(  # noqa: PLR0913 - keywords, of which programs need two or three
    plugin: object,
    *,
    name: str | None = None,
    index: str | None = None,
    socket: str | None = None,
    options: StubOptions = StubOptions(),
    flags: PluginFlags | None = None,
) -> None:
    """Run a plugin until SIGTERM, SIGINT, or the end of a launching runtime.

    The command line has priority over these arguments, and the name and index of a
    runtime that launched the plugin over both. Lines are logged to standard error, or
    to the system's log where that is lost, unless the program has configured structlog.

    Args:
        plugin: An object with handlers, or a `Plugin` of functions.
        name: Name to register with. Default: from the program's file name ``NN-name``.
        index: Two digits; likewise. ``nri-resmgr install`` reads it, too.
        socket: Path of the runtime's socket, for a plugin that was not launched by it.
        options: Time limits and choices.
        flags: Of a program that has flags of its own, and parses them with `add_flags`.
            Default: those of the command line, which has no others.

    Raises:
        SystemExit: With status 1 for a failure and 2 for bad input, after one
            sentence on standard error; where that is /dev/null, in the system's log.
    """

    async def run(given: PluginFlags) -> None:
        stub = Stub.from_environment(
            plugin,
            name=_first(given.name, name),
            index=_first(given.index, index),
            socket=_first(given.socket, socket),
            options=_with_flags(options, given, plugin),
        )
        await run_until_signal(stub)

    watch_errors()
    # Modules and classes stay for ever: without this the garbage collector scans all of
    # them, 30 ms in the middle of a request.
    gc.freeze()
    try:
        given = _command_line(plugin) if flags is None else flags
        _configure_log(given.log_level)
        asyncio.run(run(given))
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


def _command_line(plugin: object) -> PluginFlags:
    return parse_flags(
        sys.argv[1:],
        sys.argv[0],
        sys.modules["__main__"].__doc__,
        takes_config=_takes_config(plugin),
    )


def _takes_config(plugin: object) -> bool:
    return "configure" in Handlers.of(plugin).by_name


def _first(flag: str | None, argument: str | None) -> str | None:
    return argument if flag is None else flag


def _with_flags(
    options: StubOptions, flags: PluginFlags, plugin: object
) -> StubOptions:
    config = options.config
    if flags.config is not None:
        if not _takes_config(plugin):
            raise BadConfigFile(flags.config, "this plugin has no configuration")
        config = read_config(flags.config)
    return msgspec.structs.replace(
        options, config=config, dry_run=options.dry_run or flags.dry_run
    )


def _configure_log(level: str | None) -> None:
    # Late: the daemon imports this module, and configures its log elsewhere.
    import structlog

    if level is not None or not structlog.is_configured():
        from nri_resmgr.log.output import configure_logging  # late, as above

        configure_logging(level or "info")
