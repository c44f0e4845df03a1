"""Lines on standard output, written in a thread, so that no reader delays the rest."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from typing import Final

# Lines that may wait for a reader; more are lost, to bound memory.
_MOST_WAITING: Final = 10_000


class LinePrinter:
    """Prints lines in their order.

    Args:
        on_end: Called in the thread if lines can no longer be written: the reader has
            ended, or the disk is full.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._waiting: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._lost = 0
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def put(self, line: str) -> None:
        """Print a line soon; never blocks."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def finish(self) -> None:
        """Print all lines that wait, and stop.

        Raises:
            OSError: A line could not be written, as in `LinePrinter`.
        """
        self._waiting.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        # After an error lines are dropped, so that `finish` does not wait for room.
        while (line := self._waiting.get()) is not None:
            if self._error is not None:
                continue
            try:
                print(line, flush=True)
                self._report_lost()
            except OSError as error:
                self._error = error
                self._on_end()

    def _report_lost(self) -> None:
        lost, self._lost = self._lost, 0
        if lost:
            print(f"nri-resmgr: {lost} lines lost: read them faster", file=sys.stderr)
