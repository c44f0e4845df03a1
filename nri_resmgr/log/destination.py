"""Destinations of the log."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.log.sinks import LogFile
from nri_resmgr.log.system_log import JOURNALD_SOCKET, SYSLOG_SOCKET
from nri_resmgr.values.errors import InputError


class Destination(enum.StrEnum):
    """Named destinations; any other is the path of a file, which has a slash."""

    AUTO = "auto"
    STDERR = "stderr"
    SYSLOG = "syslog"
    JOURNALD = "journald"


@dataclass(eq=False)
class UnusableLog(InputError):
    """The log cannot be written to the destination."""

    text: str
    why: str

    def __str__(self) -> str:
        return f"cannot log to {self.text!r}: {self.why}"


def check_destination(to: str) -> None:
    """Check that `open_sink` can open a destination, and that it has a reader.

    Raises:
        UnusableLog: An unknown name, a missing socket, or an unwritable file.
    """
    if to in (Destination.AUTO, Destination.STDERR):
        return
    if to in (Destination.SYSLOG, Destination.JOURNALD):
        _check_socket(Destination(to))
    elif "/" in to:
        open_log_file(to).close()
    else:
        names = ", ".join(Destination)
        raise UnusableLog(to, f"expected one of {names}, or a path with a slash")


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
    path = JOURNALD_SOCKET if to is Destination.JOURNALD else SYSLOG_SOCKET
    if not Path(path).exists():
        raise UnusableLog(to, f"{path} does not exist")
