"""A signal at the Nth step of a process: a count of calls, shared between two."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

_COUNT: Final = 0
_AT: Final = 1
_SIGNAL: Final = 2
_SIZE: Final = 3 * 8


class Trigger:
    """Three numbers in a file that two processes have mapped.

    The one that is watched counts its steps, and a signal can come before any of them.

    Args:
        path: The file; made by the first of the processes.
    """

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            file.truncate(_SIZE)
            self._cells = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("Q")

    @property
    def count(self) -> int:
        """How many steps there were so far."""
        return self._cells[_COUNT]

    @property
    def is_armed(self) -> bool:
        """Whether a signal is armed."""
        return self._cells[_AT] > 0

    def reset(self) -> None:
        """Begin to count from 0, for the next process."""
        self._cells[_AT] = self._cells[_COUNT] = 0

    def arm(self, steps: int, number: int) -> None:
        """Send signal *number* in so many steps from now, at least one."""
        self._cells[_SIGNAL] = number
        self._cells[_AT] = self._cells[_COUNT] + max(steps, 1)

    def step(self) -> None:
        """Count a step of this process, and send it the signal that is due."""
        cells = self._cells
        cells[_COUNT] += 1
        if cells[_AT] and cells[_COUNT] >= cells[_AT]:
            cells[_AT] = 0
            os.kill(os.getpid(), cells[_SIGNAL])

    def watch_this_process(self) -> None:
        """Let every call and every return of a function be a step from now on.

        They are those of all threads, and of C as well.
        """
        step = self.step

        def profile(_frame: FrameType, _event: str, _argument: Any) -> None:
            step()

        threading.setprofile(profile)
        sys.setprofile(profile)
