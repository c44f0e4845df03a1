"""Where a user can have log lines go."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from nri_resmgr.log.sinks import LogFile
from nri_resmgr.values.errors import InputError


class Destination(enum.StrEnum):
    """The places with a name; any other is a file's path, which has a slash."""

    AUTO = "auto"
    STDERR = "stderr"
    SYSLOG = "syslog"
    JOURNALD = "journald"


@dataclass(eq=False)
class UnusableLog(InputError):
    """The log cannot be written where the user wants it."""

    text: str
    why: str

    def __str__(self) -> str:
        return f"cannot log to {self.text!r}: {self.why}"


def check_destination(to: str) -> None:
    """Complain early about what `open_sink` could not open, or nobody would read.

    Raises:
        UnusableLog: No such place, a socket that is not there, or a file that cannot
            be written.
    """
    if to in (Destination.AUTO, Destination.STDERR):
        return
    if to in (Destination.SYSLOG, Destination.JOURNALD):
        _check_socket(Destination(to))
    elif "/" in to:
        open_log_file(to).close()
    else:
        names = ", ".join(Destination)
        raise UnusableLog(to, f"none of {names}, and not a path with a slash")


def open_log_file(path: str) -> LogFile:
    """Open a log file.

    Raises:
        UnusableLog: It cannot be opened.
    """
    try:
        return LogFile(path)
    except OSError as error:
        raise UnusableLog(path, (error.strerror or str(error)).lower()) from None


def _check_socket(to: Destination) -> None:
    from pathlib import Path  # late: few ask for these

    from nri_resmgr.log.journald import JOURNALD_SOCKET
    from nri_resmgr.log.syslog import SYSLOG_SOCKET

    path = JOURNALD_SOCKET if to is Destination.JOURNALD else SYSLOG_SOCKET
    if not Path(path).exists():
        raise UnusableLog(to, f"there is no {path}")
