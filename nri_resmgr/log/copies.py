"""Copies of log lines for a second reader, which takes them in its own time.

Lines that wait for it are kept up to a bound; more are lost, and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from time import time_ns
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.log.line_style import line_style
from nri_resmgr.values.printable import LINES, printable

MOST_LINES: Final = 2048
"""Lines that wait; some minutes of a busy node without debug."""

MOST_CHARACTERS: Final = 1 << 20
"""Characters of texts in lines that wait."""

BATCH: Final = 512
"""Lines that are due at once, and the most that are taken together."""

# OTLP has whole numbers of 64 bits.
_WHOLE: Final = 1 << 63

_ERROR: Final = "exc_info"

Value: TypeAlias = str | int | float


def _do_nothing() -> None:
    pass


class LineCopy(msgspec.Struct, frozen=True):
    """A line of the log.

    Attributes:
        time: UNIX nanoseconds.
        level: One of `nri_resmgr.log.levels.LEVELS`.
        component: The component that wrote it.
        event: Its name.
        fields: Numbers, and all else as printable texts.
    """

    time: int
    level: str
    component: str
    event: str
    fields: Mapping[str, Value]


class LineCopies:
    """The copies that wait, in their order; any thread may put and take.

    Attributes:
        lost: The number of those that the reader did not get, or could not deliver.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._lines: deque[LineCopy] = deque()
        self._characters = 0
        self._reader = ""
        self._wake: Callable[[], object] = _do_nothing
        self._guard = threading.RLock()  # re-entrant: a destructor may log

    @property
    def waiting(self) -> int:
        """The number of lines that wait."""
        return len(self._lines)

    def read_by(self, component: str, wake: Callable[[], object]) -> None:
        """Set the reader.

        Args:
            component: That of the reader, whose own lines are not copied: each of its
                failures would have another line to deliver.
            wake: Called in any thread when a first line waits, and a `BATCH`.
        """
        self._reader, self._wake = component, wake

    def switch(self, *, is_on: bool) -> None:
        """Copy lines of this process or not; they wait also without a reader."""
        line_style.also = self.put if is_on else None

    def stop(self) -> None:
        """Copy no more lines, and drop those that wait: there will be no reader."""
        self.switch(is_on=False)
        while self.take():
            pass

    def unread(self) -> None:
        """Let lines wait for another reader."""
        self.read_by("", _do_nothing)

    def put(
        self, component: str, level: str, event: str, fields: Mapping[str, object]
    ) -> None:
        """Copy a line, or count it as lost; raises nothing."""
        if component == self._reader:
            return
        try:
            copied = dict(_copied(fields))
            line = LineCopy(time_ns(), level, component, printable(event), copied)
            if not self._append(line):
                self.note_lost(1)
            elif len(self._lines) in (1, BATCH):
                self._wake()
        except Exception:  # noqa: BLE001 - as for `Logger`: what the line is about goes on
            self.note_lost(1)

    def take(self) -> list[LineCopy]:
        """Remove the oldest lines and return them, a `BATCH` at most."""
        with self._guard:
            taken = [self._lines.popleft() for _ in range(min(BATCH, self.waiting))]
            self._characters -= sum(map(_characters, taken))
        return taken

    def note_lost(self, lines: int) -> None:
        """Count lines that were not delivered."""
        with self._guard:
            self.lost += lines

    def _append(self, line: LineCopy) -> bool:
        characters = _characters(line)
        with self._guard:
            has_room = self._characters + characters <= MOST_CHARACTERS
            if not has_room or len(self._lines) >= MOST_LINES:
                return False
            self._lines.append(line)
            self._characters += characters
        return True


def _copied(fields: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    for key, value in fields.items():
        if key == _ERROR:
            if isinstance(value, BaseException):
                yield "exception.type", type(value).__name__
                yield "exception.stacktrace", _trace(value)
        elif not isinstance(value, int | float) or (
            isinstance(value, int) and not -_WHOLE <= value < _WHOLE
        ):
            yield key, printable(str(value))
        else:
            yield key, value


def _trace(error: BaseException) -> str:
    import traceback  # late: few lines have one

    return printable("".join(traceback.format_exception(error)), LINES)


def _characters(line: LineCopy) -> int:
    texts = (one for one in line.fields.values() if isinstance(one, str))
    return len(line.event) + sum(map(len, texts))


line_copies: Final = LineCopies()
"""The copies of this process's lines."""
