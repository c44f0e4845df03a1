"""Lines that a thread writes: none is lost or late, and none is waited for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Final

from nri_resmgr.log.levels import INFO
from nri_resmgr.log.line_thread import MOST_WAITING, PATIENCE, LineThread
from nri_resmgr.log.sinks import Stream

NONE: Final[dict[str, object]] = {}
SOON: Final = 20.0  # seconds; the machine may be busy


class Pipe:
    """A pipe with a thread that writes to it; what is read is kept."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.out, into = os.pipe()
        self.stream = Stream(into)
        self.refused = 0
        self.read = b""
        self.thread = LineThread(self.stream.wait, self._write, patience)
        self._into = into

    def _write(self, level: int, line: str, fields: Mapping[str, object]) -> None:
        self.refused += not self.stream.write(level, line, fields)

    def read_all(self, until: bytes) -> bytes:
        """Read until some line was read."""
        while until not in self.read:
            self.read += os.read(self.out, 1 << 16)
        return self.read

    def close(self) -> None:
        os.close(self.out)
        os.close(self._into)


def test_a_burst_keeps_its_order_and_all_lines() -> None:
    pipe = Pipe(patience=SOON)
    lines = [f"{number:06} {'x' * 200}" for number in range(5_000)]
    assert sum(map(len, lines)) > 3 * MOST_WAITING
    reader = threading.Thread(target=pipe.read_all, args=(lines[-1].encode(),))
    reader.start()
    taken = [pipe.thread.put(INFO, line, NONE) for line in lines]
    assert pipe.thread.finish(SOON)
    reader.join(SOON)
    pipe.close()

    assert all(taken)
    assert pipe.read.decode().splitlines() == lines


def test_lines_wait_for_a_reader_up_to_a_bound() -> None:
    pipe = Pipe()
    begun = time.monotonic()
    taken = [pipe.thread.put(INFO, "x" * 1000, NONE) for _ in range(1_000)]
    took = time.monotonic() - begun
    waiting = pipe.thread.waiting
    reader = threading.Thread(target=pipe.read_all, args=(b"again\n",))
    reader.start()
    while not pipe.thread.put(INFO, "again", NONE):
        time.sleep(0.01)
    assert pipe.thread.finish(SOON)
    reader.join(SOON)
    lines = pipe.read.split()
    pipe.close()

    assert taken.index(False) * 1000 >= MOST_WAITING  # and what the pipe has taken
    assert not any(taken[taken.index(False) :])
    assert MOST_WAITING <= waiting * 1000 <= MOST_WAITING + 1000
    assert took < 5  # a thousand times the patience are twenty seconds
    assert len(lines) == sum(taken) + 1
    assert not pipe.refused


def test_the_end_does_not_wait_for_a_reader() -> None:
    pipe = Pipe()
    for _ in range(200):
        pipe.thread.put(INFO, "x" * 1000, NONE)
    begun = time.monotonic()
    has_written = pipe.thread.finish(0.1)
    later = pipe.thread.put(INFO, "later", NONE)
    took = time.monotonic() - begun
    pipe.read_all(b"later\n")  # the thread goes on, as long as the process does
    pipe.close()

    assert (has_written, later) == (False, True)
    assert took < 5


def test_after_the_end_the_caller_writes() -> None:
    pipe = Pipe()
    pipe.thread.put(INFO, "before", NONE)
    assert pipe.thread.finish(SOON)
    threads = threading.active_count()
    pipe.thread.put(INFO, "after", NONE)
    found = os.read(pipe.out, 100)
    pipe.close()

    assert found == b"before\nafter\n"
    assert threading.active_count() == threads


def test_a_line_that_cannot_be_written_does_not_end_the_thread() -> None:
    written = []

    def write(_: int, line: str, __: Mapping[str, object]) -> None:
        if line == "bad":
            raise MemoryError
        written.append(line)
        if line == "first":
            thread.put(INFO, "from the thread", NONE)

    thread = LineThread(lambda: None, write)
    for line in ("first", "bad", "last"):
        thread.put(INFO, line, NONE)
    assert thread.finish(SOON)

    assert sorted(written) == ["first", "from the thread", "last"]
    assert written.index("first") < written.index("last")
