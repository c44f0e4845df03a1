"""A thread that writes lines, so that no destination of the log blocks the program.

A pipe's reader may stop, and a disk may hang, also after it was ready a moment before.
Lines that wait are kept up to a bound; more are refused.
"""

from __future__ import annotations

import _thread
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from nri_resmgr.log import lost_lines

MOST_WAITING: Final = 256 << 10
"""Characters of waiting lines; some thousand lines, as debug has in a second."""

# A reader that is busy answers in milliseconds, a disk that wakes up in seconds.
LAST: Final = 2.0
"""Seconds at the end of the process for lines that are not written yet."""

# A caller that is faster than a working destination waits, so that no line is lost;
# once if the destination hangs, because requests are due in two seconds.
PATIENCE: Final = 0.02  # seconds

# A thread that gets no memory for its first step never begins; one that is only late
# finds the line written.
_FIRST_STEP: Final = 0.1  # seconds

Line: TypeAlias = tuple[int, str, Mapping[str, object]]


class LineThread:
    """Writes lines in their order, in a thread of its own that starts with the first.

    Without a thread the caller writes: then one that `write` waits for is lost.

    Args:
        wait: Waits until the destination has room, for as long as it takes.
        write: Writes a line; waits briefly.
        patience: How long `put` waits for room, seconds.
    """

    def __init__(
        self,
        wait: Callable[[], None],
        write: Callable[[int, str, Mapping[str, object]], None],
        patience: float = PATIENCE,
    ) -> None:
        self._wait = wait
        self._write = write
        self._patience = self._left = patience
        # Re-entrant: a destructor, which may run at any allocation, may log.
        self._changed = threading.Condition(threading.RLock())
        self._lines: deque[Line] = deque()
        self._characters = 0
        self._turn = threading.Lock()  # of the thread that writes
        self._writer = 0  # its number
        self._is_running = self._is_over = False

    @property
    def waiting(self) -> int:
        """The number of lines that are not written yet."""
        return len(self._lines)

    def put(self, level: int, line: str, fields: Mapping[str, object]) -> bool:
        """Accept a line; return False if too many wait."""
        with self._changed:
            if not self._has_room():
                return False
            self._lines.append((level, line, fields))
            self._characters += len(line)
            self._changed.notify_all()
        if self._is_over or not (self._is_running or self._start()):
            self._write_here()
        return True

    def finish(self, within: float) -> bool:
        """Wait for the waiting lines; return False if the destination hangs.

        From then on the caller of `put` writes.
        """
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_running, within)
        self._write_here()
        return not self._lines

    def _has_room(self) -> bool:
        # What the writing thread logs, such as the number of lost lines, is always
        # accepted: only this thread makes room.
        if threading.get_ident() == self._writer:
            return True
        if self._characters < MOST_WAITING:
            self._left = self._patience
            return True
        # To the half: otherwise both threads would take turns for each line.
        self._changed.wait_for(
            lambda: self._characters <= MOST_WAITING // 2, self._left
        )
        self._left = 0.0
        return self._characters < MOST_WAITING

    def _start(self) -> bool:
        try:
            _thread.start_new_thread(self._run, ())
        except (RuntimeError, MemoryError, SystemError):
            return False
        with self._changed:
            return self._changed.wait_for(lambda: self._is_running, _FIRST_STEP)

    def _run(self) -> None:
        if not self._turn.acquire(blocking=False):
            return  # it was late
        try:
            with self._changed:
                self._is_running = True
                self._changed.notify_all()
            while self._has_more():
                self._write_all(self._wait)
        finally:
            self._writer = 0
            self._turn.release()
            with self._changed:
                self._is_running = False
                self._changed.notify_all()

    def _has_more(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._is_over)
        return bool(self._lines)

    def _write_here(self) -> None:
        if self._turn.acquire(blocking=False):
            try:
                self._write_all(lambda: None)
            finally:
                self._writer = 0
                self._turn.release()

    def _write_all(self, wait: Callable[[], None]) -> None:
        self._writer = threading.get_ident()
        while self._lines:
            level, line, fields = self._lines[0]
            try:
                wait()
                self._write(level, line, fields)
            except Exception as error:  # noqa: BLE001 - as for `Logger`: the line is lost
                lost_lines.note(type(error).__name__)
            with self._changed:
                self._lines.popleft()
                self._characters -= len(line)
                self._changed.notify_all()
