"""The daemon's log as the command line has it, and the signal that makes it talk."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
from typing import Final

from nri_resmgr.log import Logger, configure_later
from nri_resmgr.log.levels import ALL, levels

log = Logger(__name__)

_AUTO: Final = "auto"


def prepare_log(options: argparse.Namespace) -> None:
    """Judge the log's flags, and have it configured with its first line.

    Raises:
        BadLevel: A pattern to debug is none.
        UnusableLog: The log cannot go where it should.
    """
    levels.set(ALL, options.log_level)
    levels.debug(options.log_debug.replace(",", " ").split())
    if options.log_to != _AUTO:
        from nri_resmgr.log.destination import check_destination  # few ask for it

        check_destination(options.log_to)
    configure_later(_configure, options.log_format, options.log_to)
    # The signal would end the process. Nothing is logged from here: it may come in
    # the middle of the import of what logs.
    signal.signal(signal.SIGUSR1, lambda *_: levels.toggle_debug())


def follow_debug_signal() -> None:
    """Let SIGUSR1 turn debug of everything on and off; needs a running loop."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _toggle_debug)


def _toggle_debug() -> None:
    log.info("log.debug-toggled", on=levels.toggle_debug())


def _configure(log_format: str, to: str) -> None:
    from nri_resmgr.log.output import LogFormat, open_sink, write_to  # structlog

    write_to(open_sink(to), LogFormat(log_format))
    gc.freeze()  # structlog stays, too
