"""Progress is shown on terminals only, and is gone in the end."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from nri_resmgr.cli.progress import Progress


class SteppingClock:
    """A clock that goes on by a step each time that it is read."""

    def __init__(self, step: float) -> None:
        self._now, self._step = 0.0, step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: ours, and the process'."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def shown(ends: tuple[int, int], count: int, step: float) -> str:
    """Return what a terminal gets while *count* of as many things are done."""
    ours, theirs = ends
    with os.fdopen(theirs, "w", closefd=False) as stream:
        with Progress(stream, count, "pods", SteppingClock(step)) as progress:
            for _ in range(count):
                progress.advance()
        stream.write("end")
    text = ""
    while not text.endswith("end"):
        text += os.read(ours, 1 << 16).decode()
    return text


def test_a_long_run_shows_where_it_is(terminal: tuple[int, int]) -> None:
    text = shown(terminal, 3, 2.0)

    lines = ["1 of 3 pods", "2 of 3 pods", "3 of 3 pods", " " * 11]
    assert text == "".join(f"\r{line}" for line in lines) + "\rend"


def test_a_line_is_written_a_few_times_a_second(terminal: tuple[int, int]) -> None:
    text = shown(terminal, 200, 0.01)

    # After the first second, and each fifth of one after that.
    numbers = [int(line.split()[0]) for line in text.split("\r")[1:-2]]
    assert numbers[0] in (100, 101)
    assert {after - before for before, after in pairwise(numbers)} <= {20, 21}


def test_a_short_run_shows_nothing(terminal: tuple[int, int]) -> None:
    assert shown(terminal, 50, 0.01) == "end"


def test_nothing_is_written_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with (
        path.open("w") as stream,
        Progress(stream, 3, "pods", SteppingClock(2.0)) as progress,
    ):
        progress.advance()

    assert path.read_text() == ""
