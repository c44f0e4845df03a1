"""Set-up of the daemon's log from the command line; SIGUSR1 toggles debug."""

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
    """Check the log's flags; the first line configures it.

    Raises:
        BadLevel: A pattern of ``--log-debug`` is invalid.
        UnusableLog: ``--log-to`` cannot be written.
    """
    levels.set(ALL, options.log_level)
    levels.debug(options.log_debug.replace(",", " ").split())
    if options.log_to != _AUTO:
        from nri_resmgr.log.destination import check_destination  # rarely used

        check_destination(options.log_to)
    configure_later(_configure, options.log_format, options.log_to)
    # By default the signal ends the process. The handler must not log: the signal may
    # arrive during the import of structlog.
    signal.signal(signal.SIGUSR1, lambda *_: levels.toggle_debug())


def follow_debug_signal() -> None:
    """Let SIGUSR1 toggle debug of all components; needs a running loop."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _toggle_debug)


def _toggle_debug() -> None:
    log.info("log.debug-toggled", on=levels.toggle_debug())


def _configure(log_format: str, to: str) -> None:
    from nri_resmgr.log.output import (  # imports structlog
        LogFormat,
        open_sink,
        write_to,
    )

    write_to(open_sink(to), LogFormat(log_format))
    gc.freeze()  # the objects of structlog, too, stay
