"""Sinks of log lines: a stream that may block, a file that is rotated."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from typing import Final, Protocol

# Wait once for a busy reader: requests are due in two seconds.
_PATIENCE: Final = 20  # milliseconds

# A ready pipe takes this much without blocking: pipe(7), PIPE_BUF.
_PIECE: Final = 4096


class Sink(Protocol):
    """Takes lines, and drops them if it cannot: logging must not block the program.

    Attributes:
        has_clock: Whether the reader adds the time.
        has_fields: Whether lines are passed with their fields.
    """

    has_clock: bool = False
    has_fields: bool = False

    def wait(self) -> None:
        """Wait until `write` has room; in a thread for which nothing waits."""

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:
        """Take a line of one of `LEVELS`; return False if it was dropped."""

    def close(self) -> None:
        """Close the sink; nothing is written afterwards."""


class Stream(Sink):
    """A shared descriptor, such as standard error.

    It stays blocking, because other processes may share it. Instead it is polled
    before each write, so that a log collector that hangs costs lines, not replies.
    This is no help for a file on a disk that hangs, which is always ready: for that
    programs have a `nri_resmgr.log.line_thread.LineThread`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._patience = _PATIENCE
        self._is_torn = False

    def wait(self) -> None:
        """See `Sink.wait`."""
        self._poll.poll()

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:  # noqa: ARG002 - a sink's
        """See `Sink.write`."""
        text = f"\n{line}\n" if self._is_torn else f"{line}\n"
        data = text.encode(errors="replace")
        sent = 0
        try:
            while sent < len(data) and self._has_room():
                sent += os.write(self._descriptor, data[sent : sent + _PIECE])
        except OSError:  # no reader, or the disk is full
            pass
        if sent:
            self._is_torn = sent < len(data)
        return sent == len(data)

    def close(self) -> None:
        """See `Sink.close`; the descriptor stays open."""

    def _has_room(self) -> bool:
        has_room = bool(self._poll.poll(self._patience))
        self._patience = _PATIENCE if has_room else 0
        return has_room


class LogFile(Sink):
    """A file that is opened again after it was moved away.

    Args:
        path: Its path; created if missing, readable for its owner only.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._open()

    def wait(self) -> None:
        """See `Sink.wait`."""
        if self._descriptor >= 0:
            self._stream.wait()

    def write(self, level: int, line: str, fields: Mapping[str, object]) -> bool:
        """See `Sink.write`."""
        try:
            if self._descriptor < 0 or not self._is_in_place():
                self.close()
                self._open()
        except OSError:
            return False
        return self._stream.write(level, line, fields)

    def close(self) -> None:
        """See `Sink.close`."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self._path, flags, 0o600)
        self._identity = _identity(os.fstat(self._descriptor))
        self._stream = Stream(self._descriptor)

    def _is_in_place(self) -> bool:
        try:
            return _identity(os.stat(self._path)) == self._identity  # noqa: PTH116 - 2 microseconds a line
        except FileNotFoundError:
            return False


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
