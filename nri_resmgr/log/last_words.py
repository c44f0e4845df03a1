"""The last words of a process, also in the system's log where standard error is lost.

A runtime launches plugins with standard error on /dev/null: why one of them ended would
be found nowhere.
"""

from __future__ import annotations

import os
import stat
import sys
import traceback
import warnings
from pathlib import Path
from types import TracebackType
from typing import Final, TextIO

from nri_resmgr.log.levels import ERROR, WARNING
from nri_resmgr.log.system_log import JOURNALD_SOCKET, SYSLOG_SOCKET, Journald, Syslog
from nri_resmgr.values.printable import LINES, printable

_NULL_DEVICE: Final = os.makedev(1, 3)
_STDERR: Final = 2


def is_stderr_lost() -> bool:
    """Return whether standard error is /dev/null, or closed."""
    try:
        facts = os.fstat(_STDERR)
    except OSError:
        return True
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev == _NULL_DEVICE


def system_log() -> Journald | Syslog | None:
    """Return the system's log; None if there is none."""
    if Path(JOURNALD_SOCKET).exists():
        return Journald()
    return Syslog() if Path(SYSLOG_SOCKET).exists() else None


def say(text: str) -> None:
    """Print *text* to standard error; if that is lost, write it to the system's log."""
    print(printable(text, LINES), file=sys.stderr)  # noqa: T201 - last words
    _log(ERROR, text)


def watch_errors() -> None:
    """If standard error is lost, log uncaught exceptions and warnings from now on."""
    if is_stderr_lost():
        sys.excepthook = log_uncaught
        warnings.showwarning = _log_warning


def log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an uncaught exception as Python does, or log it; for `sys.excepthook`."""
    sys.__excepthook__(kind, error, trace)
    if not isinstance(error, KeyboardInterrupt):
        lines = traceback.format_exception(kind, error, trace)
        _log(ERROR, f"{sys.argv[0]}: {''.join(lines).rstrip()}")


def _log_warning(  # noqa: PLR0913, PLR0917 - as Python calls it
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    _log(WARNING, f"{filename}:{lineno}: {category.__name__}: {message}")


def _log(level: int, text: str) -> None:
    if is_stderr_lost() and (sink := system_log()):
        sink.write(level, printable(text, LINES), {})
        sink.close()
