"""Set-up and end of the daemon's log; SIGUSR1 toggles debug."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from nri_resmgr.log import Logger, configure_later
from nri_resmgr.log.levels import ALL, levels
from nri_resmgr.log.line_thread import LAST, LineThread

log = Logger(__name__)

_AUTO: Final = "auto"

_STDERR: Final = 2

# Empty until the first line is written; with each, whether it is standard error's.
_threads: Final[list[tuple[LineThread, bool]]] = []


@contextmanager
def log_in_use(options: argparse.Namespace) -> Iterator[None]:
    """Check the log's flags, and write the waiting lines at the end.

    Raises:
        BadLevel: See `prepare_log`.
        UnusableLog: See there.
    """
    prepare_log(options)
    try:
        yield
    finally:
        finish_log()


def prepare_log(options: argparse.Namespace) -> None:
    """Check the log's flags; the first line configures it.

    Raises:
        BadLevel: A pattern of ``--log-debug`` is invalid.
        UnusableLog: ``--log-to`` cannot be written.
    """
    levels.set(ALL, options.log_level)
    levels.debug(options.log_debug.replace(",", " ").split())
    if options.log_to != _AUTO:
        # Late: on the start path, and few daemons log elsewhere.
        from nri_resmgr.log.destination import check_destination

        check_destination(options.log_to)
    configure_later(_configure, options.log_format, options.log_to)
    sys.unraisablehook = _log_ignored_error
    # By default the signal ends the process. The handler must not log: the signal may
    # arrive during the import of structlog.
    signal.signal(signal.SIGUSR1, lambda *_: levels.toggle_debug())


def follow_debug_signal() -> None:
    """Let SIGUSR1 toggle debug of all components; needs a running loop."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _toggle_debug)


def waiting_lines() -> int:
    """Return the number of lines that are accepted, but not written yet."""
    return sum(thread.waiting for thread, _ in _threads)


def finish_log() -> None:
    """Write the waiting lines, and keep a standard error that hangs from blocking.

    What is printed at the end, such as the reason of it, would wait for the same reader
    or disk, and the process with it. It is lost then.
    """
    hangs = any(not thread.finish(LAST) and at_stderr for thread, at_stderr in _threads)
    if sys.stderr is None:
        return  # the number may be another file's
    ready = select.poll()
    ready.register(_STDERR, select.POLLOUT)
    if not hangs and ready.poll(0):
        return
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)


def _log_ignored_error(found: sys.UnraisableHookArgs) -> None:
    """Log an error that Python has nowhere to raise, as in a thread's first step."""
    with suppress(Exception):  # perhaps there is no memory for a line
        why = f"{found.exc_type.__name__}: {found.exc_value or ''}".removesuffix(": ")
        what = found.err_msg or "Exception ignored in"
        log.error("python.error-ignored", why=why, where=f"{what} {found.object!r}")


def _toggle_debug() -> None:
    log.info("log.debug-toggled", on=levels.toggle_debug())


def _configure(log_format: str, to: str) -> None:
    # Late: `output` imports structlog, which waits for the first line.
    from nri_resmgr.log import output, sinks

    sink = output.open_sink(to)
    written = output.write_to(sink, output.LogFormat(log_format), in_thread=True)
    if written.thread:
        _threads.append((written.thread, isinstance(sink, sinks.Stream)))
    gc.freeze()  # the objects of structlog, too, stay
