"""Progress of a command on standard error, where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

from nri_resmgr.cli.streams import PrintableStream

# Seconds. Most runs are over before the first line would help.
_FIRST: Final = 1.0
_EVERY: Final = 0.2


class Progress:
    """A line that counts what is done, replaced each time, and removed at the end.

    Args:
        stream: The terminal; nothing is written where it is none.
        total: The number of things to do.
        things: Their name.
        now: A clock, in seconds.
    """

    def __init__(
        self,
        stream: TextIO,
        total: int,
        things: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total
        self._things = things
        self._now = now
        self._done = self._width = 0
        self._next = now() + _FIRST if stream.isatty() else float("inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._show("")
        if self._width:
            self._stream.write("\r")
            self._stream.flush()

    def advance(self) -> None:
        """Note that one more is done."""
        self._done += 1
        if (now := self._now()) >= self._next:
            self._next = now + _EVERY
            self._show(f"{self._done} of {self._total} {self._things}")

    def _show(self, text: str) -> None:
        if text or self._width:
            self._stream.write("\r" + text.ljust(self._width))
            self._stream.flush()
            self._width = max(self._width, len(text))


def standard_error() -> TextIO:
    """Return the stream of the process, to which a line can be written again."""
    stream = sys.stderr
    return stream.unfiltered if isinstance(stream, PrintableStream) else stream
